"""Each check of a page fails on a page that is broken in the way that it looks for, and on no whole page."""

import pytest
import sample_page
from sample_page import PARTS, QUESTIONS, replaced

from drills import catalog
from drills.author import page_code, pages
from drills.study.page import parse


def found(page, exercises=sample_page.EXERCISES):
    return list(pages.page_problems(page, exercises))


def test_a_whole_page_has_no_problem(tmp_path):
    assert found(sample_page.page(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Edges\n\nEmpty states.\n\n", "", "section 'Edges' is missing"),
        ("## Edges", "## Corners", "section 'Corners' is none"),
        ("x * 21\n42", "x * 21\n43", ">>> x * 21 gives '42', and the page says '43'"),
        (">>> math.log2(x)", ">>> math.log2(y)", "raises NameError"),
        ("```python\n>>> x = 2", "```python\n>>>x = 2", "lacks blank"),
        ("check: 10 + 1", "check: 10 + 2", "the answer is 11, and check gives 12"),
        ("check: 10 + 1", "check: nothing", "check fails: NameError"),
        ("\ncheck: 10 + 1", "", "has no 'check:'"),
        ("answer: 0.48", "answer: 0.49", "the answer is 0.49, and check gives 0.479"),
        ("check: -math.inf", "check: math.inf", "check gives inf"),
        ("wrong 10.69", "wrong 11.001", "'11.001' is not taken for wrong"),
        ("print(1 / 2)", "print(1 / 4)", "the program prints '3 0.25'"),
        ("print(1 / 2)", "print(1 / 0)", "its program fails: ZeroDivisionError"),
        ("](#the-first-pitfall)", "](#the-second-pitfall)", "there is no such heading"),
        ("](#the-first-pitfall)", "](nothing.md)", "there is no such file"),
        ("https://arxiv", "http://arxiv", "is not https"),
        ("\\frac{a}{b}", "\\binomial{a}{b}", "\\binomial cannot be shown"),
        ("Averaging.", "Obviously averaging.", "'obviously' tells the reader"),
        ("Averaging.", "```python\nx = = 1\n```", "not Python"),
    ],
)
def test_what_does_not_hold_is_found(tmp_path, old, new, says):
    problems = found(replaced(old, new, tmp_path))
    assert len([problem for problem in problems if says in problem]) == 1, problems


def test_sections_out_of_order_are_found(tmp_path):
    swapped = dict(PARTS)
    edges = swapped.pop("Edges")
    source = "# T\n\n" + "".join(f"## {title}\n\n{body}\n\n" for title, body in (swapped | {"Edges": edges}).items())
    assert any("not in order" in problem for problem in found(parse(source, tmp_path / "p.md")))


def test_hints_must_be_for_the_exercises(tmp_path):
    page = sample_page.page(tmp_path)
    assert any("hints are for" in problem for problem in found(page, ("merge_state",)))
    assert any("hints are for" in problem for problem in found(page, ("merge_states", "merge_state")))


def test_too_few_questions_and_kinds_are_found(tmp_path):
    page = sample_page.page(tmp_path, **{"Self-check": "\n".join(QUESTIONS[:2])})
    problems = found(page)
    assert any("2 questions, and a page has at least 6" in problem for problem in problems)
    assert any("no question of type output" in problem for problem in problems)


def test_a_picture_must_be_well_formed(tmp_path):
    (tmp_path / "a.svg").write_text("<svg><rect></svg>")
    page = sample_page.page(tmp_path, Edges="![a](a.svg)")
    assert any("not well-formed" in problem for problem in found(page))
    (tmp_path / "a.svg").write_text("<svg/>")
    assert found(page) == []


def test_a_heading_of_another_page_must_be_there(tmp_path):
    (tmp_path / "l1_first.md").write_text("# First\n\n## Edges\n\nx\n")
    assert found(sample_page.page(tmp_path, Edges="[a](l1_first.md#edges)")) == []
    assert any("no such heading" in one for one in found(sample_page.page(tmp_path, Edges="[a](l1_first.md#corners)")))


def test_an_anchor_that_a_mistake_points_to_must_be_there(tmp_path):
    page = sample_page.page(tmp_path)
    assert list(pages.anchor_problems(page, [("the mistake average", "the-first-pitfall")])) == []
    said = list(pages.anchor_problems(page, [("the mistake average", "averages")]))
    assert said == ["l4_merge_states.md: has no heading '#averages', to which the mistake average points"]


def test_doctests_share_one_namespace_and_name_their_line(tmp_path):
    page = replaced(">>> math.log2(x)\n1.0", ">>> math.log2(x)\n2.0", tmp_path)
    (problem,) = page_code.problems(page)
    line = int(problem.split(":")[1])
    assert page.source.split("\n")[line - 1] == ">>> math.log2(x)"


def test_every_section_of_a_page_is_checked_for():
    assert tuple(PARTS) == pages.SECTIONS


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.short)
def test_the_pages_of_this_repository_hold(lesson):
    assert pages.lesson_problems(lesson) == []
