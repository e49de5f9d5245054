"""Pages are read as they are written, and what breaks the format is said with its line."""

import subprocess
import sys
from pathlib import Path

import pytest
import sample_page
from sample_page import replaced

from drills.study import markdown
from drills.study.page import PageError, load, parse

LAST_HINT = "<details><summary>Hint 3 of 3</summary>\n\nStage 3 of `merge_state`: $2^{s_a - s}$.\n\n</details>\n"


@pytest.fixture
def page():
    return sample_page.page(Path("."))


def problems(old, new):
    with pytest.raises(PageError) as caught:
        replaced(old, new)
    return str(caught.value)


def test_title_sections_and_anchors_are_read(page):
    assert page.title == "Merging"
    assert [section.title for section in page.sections] == list(sample_page.PARTS)
    assert page.section("Edges").text == "Empty states."
    assert page.section("Nothing of the kind") is None
    assert page.source.split("\n")[page.anchors["the-first-pitfall"] - 1] == "### The first pitfall"


def test_hints_are_read_in_order(page):
    assert list(page.hints) == list(sample_page.EXERCISES)
    assert page.hints["merge_states"][1] == "Stage 2 of `merge_states`: $2^{s_a - s}$."


def test_a_number_is_read_whole(page):
    asked = page.questions[0]
    assert (asked.number, asked.kind, asked.answer, asked.tolerance) == (1, "number", "11", 0.01)
    assert (asked.unit, asked.check, asked.wrongs) == ("base 2", "10 + 1", {"10.69": "ln 2: the natural rule"})
    assert asked.text == "What is s, when $s_a = s_b = 10$?"
    assert asked.explanation == "It is $10 + 1$."


def test_a_choice_has_its_options_and_an_output_its_program(page):
    choice, output = page.questions[1:3]
    assert choice.options == {"a": "NaN", "b": "zero and `-inf`"}
    assert output.code == "print(3)\nprint(1 / 2)\n"
    assert output.wrongs == {"3": "the second line is missing"}


@pytest.mark.parametrize(("answer", "tolerance"), [("11", 0.0), ("7.21", 0.005), ("204.5", 0.05), ("1e-3", 0.0)])
def test_without_a_tolerance_half_the_last_decimal_is_allowed(answer, tolerance):
    asked = replaced("answer: 11\ntolerance: 0.01", f"answer: {answer}").questions[0]
    assert asked.tolerance == pytest.approx(tolerance)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# Merging", "Merging", "l4_merge_states.md:1: the page must begin with its title"),
        ("Hint 2 of 3", "Hint 2", "must be 'Hint 2 of 3'"),
        (LAST_HINT, "", "has 2 hints"),
        ("### merge_states", "### merge_state", "stand twice"),
        ("Stage 1 of `merge_state`: $2^{s_a - s}$.\n", "", "Hint 1 of 3 of merge_state is empty"),
        ("### Question 2", "### Question 3", "must be 'Question 2'"),
        ("type: number\nanswer: 11", "type: numeral\nanswer: 11", "question 1: type is 'numeral'"),
        ("answer: 11\n", "", "question 1: has no answer"),
        ("answer: 11", "answer: eleven", "answer must be a number, not 'eleven'"),
        ("wrong 10.69: ln", "wrong ten: ln", "wrong ten must be a number"),
        ("tolerance: 0.01", "tolerance: small", "tolerance must be a number"),
        ("unit: base 2", "units: base 2", "unknown key 'units'"),
        ("unit: base 2", "unit base 2", "is not 'key: value'"),
        ("unit: base 2", "answer: 12", "'answer' stands twice"),
        ("What is s, when $s_a = s_b = 10$?", "", "asks nothing"),
        ("It is $10 + 1$.", "", "needs one <details> with the explanation"),
        ("- b) zero", "- c) zero", "must begin with 'b) '"),
        ("- a) NaN\n- b) zero and `-inf`", "a or b", "needs a list of options"),
        ("answer: b", "answer: d", "'d' is none of the options a, b"),
        ("```python\nprint(3)\nprint(1 / 2)\n```", "", "needs one ```python fence and has 0"),
        ("```quiz\ntype: output", "```text\ntype: output", "has 0 ```quiz fences"),
        ("It is $10 + 1$.\n\n</details>", "It is $10 + 1$.", "is not closed"),
        ("Six questions.", "</details>\n\nSix questions.", ""),
    ],
)
def test_what_breaks_the_format_is_said(old, new, says):
    if says:
        assert says in problems(old, new)
    else:
        replaced(old, new)


def test_a_problem_names_its_line():
    said = problems("answer: 11", "answer: eleven").split(":")
    source = sample_page.text().split("\n")
    assert said[0] == "l4_merge_states.md"
    assert source[int(said[1]) - 1] == "```quiz"


def test_every_problem_is_listed():
    source = sample_page.text().replace("answer: 11", "answer: x").replace("answer: b", "answer: z")
    with pytest.raises(PageError) as caught:
        parse(source, Path("p.md"))
    assert len(caught.value.problems) == 2


def test_windows_line_endings_and_a_bom_change_nothing(tmp_path, page):
    path = tmp_path / "p.md"
    path.write_bytes(b"\xef\xbb\xbf" + sample_page.text().replace("\n", "\r\n").encode())
    assert load(path).questions == page.questions


def test_text_in_another_encoding_is_said(tmp_path):
    path = tmp_path / "p.md"
    path.write_bytes("# Größe".encode("latin-1"))
    with pytest.raises(PageError, match="not UTF-8"):
        load(path)


def test_folds_may_touch(page):
    apart = "</details>\n\n<details><summary>Hint 2"
    assert replaced(apart, apart.replace("\n\n", "\n")).hints == page.hints


def test_an_exercise_may_stand_in_backquotes(page):
    assert replaced("### merge_states", "### `merge_states`").hints == page.hints


def test_a_heading_in_code_is_no_heading():
    anchors = sample_page.page(Path("."), Edges="```python\n# not a heading\n## nor this\n```").anchors
    assert "not-a-heading" not in anchors


@pytest.mark.parametrize(
    ("words", "anchor"),
    [
        ("How FlashInfer, FlashAttention and vLLM do it", "how-flashinfer-flashattention-and-vllm-do-it"),
        ("`merge_state` in place", "merge_state-in-place"),
        ("Offsets past 2^31", "offsets-past-231"),
        ("A tile of rows: why?", "a-tile-of-rows-why"),
    ],
)
def test_anchors_are_githubs(words, anchor):
    assert markdown.blocks(f"# {words}")[0].slug == anchor


def test_headings_that_repeat_are_numbered():
    assert [block.slug for block in markdown.blocks("# a\n\n# a\n\n# a")] == ["a", "a-1", "a-2"]


def test_maths_is_told_from_code_and_from_money():
    found = markdown.formulas("An $a_b$ and `$c$`, $$d$$, costs $5 and $6.\n\n```math\ne\n```\n")
    assert [formula.text.strip() for formula in found] == ["a_b", "d", "e"]


def test_links_are_found_and_code_is_not():
    found = markdown.links("[a](b.md#c)\n\n`[d](e)` ![f](g.svg)\n")
    assert [(link.target, link.line) for link in found] == [("b.md#c", 1), ("g.svg", 3)]


def test_reading_a_page_imports_no_torch():
    code = "import sys, drills.study.page; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
