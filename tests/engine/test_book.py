"""The book's parts that need no packages of their own: its numbers, its Markdown, its links, what it refuses."""

import importlib.util
import json
import math
import re
import subprocess
import sys

import pytest
import torch
from repository_of_its_own import build as repository
from repository_of_its_own import grade

from drills import catalog
from drills.book import build, figures, pages, quiz_form, render, theme
from drills.book import repository as web
from drills.errors import WrongUse
from drills.lessons import oracle
from drills.study.page import load


def rows(name):
    return {row[0]: row[1:] for row in figures.FIGURES[name].still()}


def numbers(values):
    return tuple(figures.number(float(x)) for x in values)


def story(end):
    scores, values = (torch.tensor(x[:end], dtype=torch.float64) for x in (figures.SCORES, figures.VALUES))
    m, l = oracle.softmax_stats(scores)
    return m, l, oracle.attend(scores, values[:, None])[0]


def test_the_still_of_the_walk_is_the_oracles():
    for block in (1, 2):
        m, l, attention = story(2 * block)
        assert rows("online_softmax")[f"block {block}"] == numbers((m, l, attention * l, attention))


def test_the_still_of_the_tree_is_the_oracles():
    assert rows("merge_tree")["keys 0, 1, 2, 3"] == numbers(story(4))
    assert rows("merge_tree")["keys 0, 1"] == numbers(story(2))


def test_the_still_of_the_bases_is_the_oracles():
    pair = torch.tensor([[3072.0], [64.0]], dtype=torch.float64).log()[:, 0]
    ways = {
        "right": (pair, torch.exp),
        "exp on base-2 numbers": (pair * oracle.LOG2_E, torch.exp),
        "exp2 on natural numbers": (pair, torch.exp2),
    }
    for name, (s, exp) in ways.items():
        share, _ = oracle.merge(torch.tensor([[1.0], [0.0]]), s, exp=exp)
        assert rows("lse_bases")[name][1] == f"{100 * share.item():.2f} %"


def test_the_figure_of_the_bases_starts_from_the_oracles_states():
    scores = torch.tensor(figures.SCORES, dtype=torch.float64).reshape(2, 2)
    values = torch.tensor(figures.VALUES, dtype=torch.float64).reshape(2, 2)
    case = figures.FIGURES["lse_bases"].case
    assert case["lse"] == pytest.approx(oracle.lse(scores).tolist())
    assert case["o"] == pytest.approx(
        [oracle.attend(x, v[:, None]).item() for x, v in zip(scores, values, strict=True)]
    )


def test_the_still_of_the_addresses_is_the_pages_image_of_a_tensor():
    case = figures.FIGURES["address_map"].case
    assert case == {"S": 2, "N": 3, "H": 2, "D": 4, "program": 3}
    page = load(catalog.find("l4").lesson.page).source
    image = re.search(r"<!-- figure: address_map -->\n\n!\[([^]]*)\]\(figures/l4_addresses.svg\)", page)
    read = torch.arange(2 * 3 * 2).reshape(2, 3, 2)[1, :, 1].tolist()
    assert f"elements {read[0]}, {read[1]} and {read[2]}" in image[1]


def test_a_figure_without_a_still_of_its_own_needs_an_image():
    with pytest.raises(WrongUse, match="needs an image"):
        figures.placed("address_map", "")


def test_the_still_of_the_bytes_is_the_pages():
    page = load(catalog.find("l5").lesson.page).source
    for name in ("without cascade", "with cascade"):
        keys, size = rows("cascade_bytes")[name]
        assert re.search(rf"{name} \|[^|]*\| {keys} keys, {size.split('.')[0]}", page)


def test_every_figure_is_placed_once_and_no_other():
    placed = [name for lesson in catalog.lessons() for name in render.FIGURE.findall(load(lesson.page).source)]
    assert sorted(placed) == sorted(figures.FIGURES)


@pytest.mark.parametrize(
    ("x", "text"), [(0.0, "0"), (-2.0, "−2"), (1.36788, "1.368"), (26.2089, "26.21"), (-math.inf, "−∞")]
)
def test_numbers_are_written_as_on_the_pages(x, text):
    assert figures.number(x) == text


def setting(**changed):
    return render.Setting(
        **({"formulas": {}, "link": str, "quiz": str, "figure": lambda name, still: f"[{name}|{still}]"} | changed)
    )


def test_headings_keep_the_anchors_that_github_gives_them():
    text = render.page("# T\n\n## `a_b` (−∞)\n\nx\n\n## `a_b` (−∞)\n", setting())
    assert "## `a_b` (−∞) {#a_b-}" in text
    assert "## `a_b` (−∞) {#a_b--1}" in text


def test_a_figures_comment_takes_the_image_below_it_as_its_still():
    text = render.page("# T\n\n<!-- figure: map -->\n\n![words](figures/x.svg)\n\nafter\n", setting())
    assert re.search(r"\[map\|<span[^>]*><img src=\"figures/x.svg\" alt=\"words\"", text)
    assert text.count("<img") == 1
    assert "[map|]" in render.page("# T\n\n<!-- figure: map -->\n\nWords ![x](x.svg)\n", setting())


def test_an_unknown_figure_is_named():
    with pytest.raises(WrongUse, match=r"no figure 'nothing'.*online_softmax"):
        figures.placed("nothing", "")


def test_links_lead_into_the_book_or_the_repository_or_are_none():
    link = pages.linker({"l1", "l2"}, "https://example.org/x")
    assert link("l2.md#a") == "l2.html#a"
    assert link("#a") == "#a"
    assert link("https://a.b/c.md") == "https://a.b/c.md"
    assert link("figures/a.svg") == "figures/a.svg"
    assert link("../tests/x.py") == "https://example.org/x/blob/main/tests/x.py"
    nowhere = pages.linker({"l1"}, "")
    assert render.inline("[words](../tests/x.py) and [more](l1.md)", setting(link=nowhere)) == (
        'words and <a href="l1.html">more</a>'
    )


def test_a_question_is_a_form_that_holds_what_judges_it():
    question = next(one for one in load(catalog.find("l1").lesson.page).questions if one.kind == "choice")
    text = quiz_form.form(question, setting())
    assert text.startswith('<form class="quiz"')
    assert " hidden>" in text
    assert text.count('type="radio"') == len(question.options)
    known = quiz_form.data(question)
    assert json.loads(json.dumps(known)) == known
    assert (known["answer"], known["wrongs"]) == (question.answer, question.wrongs)


@pytest.mark.parametrize("given", ["nonsense", "ftp://example.org/x", "https://"])
def test_the_repositorys_address_must_be_one(given):
    with pytest.raises(WrongUse, match="web address"):
        web.address(catalog.ROOT, given)


def test_the_repositorys_address_comes_from_the_project(tmp_path):
    project = tmp_path / "pyproject.toml"
    project.write_text('[project.urls]\nHomepage = "https://a.b"\nRepository = "https://example.org/drills/"\n')
    if importlib.util.find_spec("tomllib") is None:
        pytest.importorskip("tomli")
    assert web.address(tmp_path, None) == "https://example.org/drills"
    project.write_text("[project]\n")
    assert web.address(tmp_path, None) == ""


def test_without_its_packages_the_command_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WrongUse, match=r"pip install -r requirements-book\.txt"):
        build.build(catalog.ROOT, tmp_path / "site", "")


def test_a_folder_that_is_no_book_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(WrongUse, match="is no book"):
        build.build(catalog.ROOT, tmp_path, "")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(WrongUse, match="is a file"):
        build.build(catalog.ROOT, tmp_path / "thesis.tex", "")


def test_pages_name_no_address_of_their_own(tmp_path):
    (tmp_path / "assets" / "book").mkdir(parents=True)
    (tmp_path / "assets" / "book" / "katex.css").touch()
    head = '<link rel="icon" href="a.svg"><link rel="canonical" href="/l1.html"><link rel="next" href="l2.html">'
    (tmp_path / "l1.html").write_text(head)
    theme.finish(tmp_path)
    assert (tmp_path / "l1.html").read_text() == '<link rel="icon" href="a.svg"><link rel="next" href="l2.html">'


def test_the_book_needs_no_torch():
    script = "import sys; from drills.book import build, command; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=catalog.ROOT, timeout=60).returncode == 0


def test_the_command_line_knows_the_book(tmp_path):
    assert "-o DIR" in grade(repository(tmp_path), "book --help")
