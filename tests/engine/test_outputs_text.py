"""Text by strangers in Markdown and in spreadsheets; the student's report and the class's, read as Markdown."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sample_class import CLASS, EVIL, L4, one, result
from sample_grades import WRONG_VALUE, failed, passed

from drills.report import words
from drills.report.formats import class_report, markdown, student
from drills.report.formats.spreadsheet import cell
from drills.report.model import Failure, LevelResult, TestResult
from drills.report.points import Points
from drills.report.statistics import Statistics
from drills.report.submission import RENAME

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HARMLESS = {"text", "code_inline", "strong_open", "strong_close", "softbreak"}
INJECTIONS = [
    EVIL,
    "[click](javascript:alert(1))",
    "![x](http://evil.example/p.png)",
    "<script>alert(1)</script>",
    "<!-- gone -->",
    "<http://evil.example>",
    "http://evil.example/ and www.evil.example",
    "mail a@b.example and @everyone",
    "`` ` ``` ` ``",
    "**bold** __under__ ~~gone~~ # head",
    "| a | b |",
    "&lt;b&gt; &#60;i&#62;",
    "$x$ and \\(y\\)",
    ":smile: #1",
    "a\\",
    "\\`x\\`",
    "]]> --> */",
]


def tokens(text):
    """Every token of the document, those within lines too."""
    for token in PARSER.parse(text):
        yield token
        yield from token.children or []


def shown(text):
    """What a reader of the document sees."""
    return "".join(token.content for token in tokens(text) if token.type in ("text", "code_inline", "fence"))


def only_text(text):
    """Whether the document is text alone: no link, image, HTML or emphasis."""
    return {token.type for token in tokens(text)} <= HARMLESS | {"paragraph_open", "paragraph_close", "inline"}


@pytest.mark.parametrize("evil", INJECTIONS)
@pytest.mark.parametrize("way", [markdown.text, markdown.code])
def test_a_line_is_shown_as_it_was_written(evil, way):
    made = f"x {way(evil)} y"
    assert only_text(made)
    assert shown(made).replace("¦", "|") == f"x {words.clean(evil)} y"


@given(
    st.text(st.characters(codec="utf-8"), max_size=60)
    | st.text(st.sampled_from("`*_[]()<>!&|~\\#:/@$ ax1.-+=\n"), max_size=30)
)
def test_no_text_at_all_becomes_markup(evil):
    for made in (markdown.text(evil), markdown.code(evil)):
        assert only_text(f"x {made} y")
        assert shown(f"x {made} y").replace("¦", "|").split() == f"x {words.clean(evil)} y".replace("¦", "|").split()
    assert "\n" not in markdown.text(evil)


@pytest.mark.parametrize("evil", ["```\n# out", "````", "~~~\nx", "a\n\n\n# b", "</code>"])
def test_a_block_cannot_be_left(evil):
    lines = markdown.block(evil, "  ")
    found = [token for token in tokens("- x\n" + "\n".join(lines)) if token.type == "fence"]
    assert [token.content.rstrip("\n") for token in found] == [evil]
    assert markdown.block(" \n ") == []


@pytest.mark.parametrize("evil", ["http://evil.example", "https://x", "WWW.evil.example", "ftp://x"])
def test_what_some_sites_make_a_link_is_broken_up(evil):
    assert not re.search(r"\w://|www\.", markdown.text(evil), re.IGNORECASE)


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "'=1",
    '"=1',
    "−1",
]


@pytest.mark.parametrize("evil", FORMULAS)
def test_a_cell_is_no_formula_and_stays_readable(evil):
    made = cell(evil)
    assert made.startswith("'")
    assert words.clean(evil) in made.replace("''", "'")


@pytest.mark.parametrize("evil", ["a;=1", "a,=1", 'a;"=1', "a|=1", "Ann, =cmd|' /C calc'!A1"])
def test_a_part_of_a_cell_is_no_formula_where_lines_are_split_otherwise(evil):
    assert not re.search(r"[,;|][\s\"]*=", cell(evil))


@pytest.mark.parametrize("name", ["Ada Löve", "O'Neil, Ann-Marie", "李雷", "a=b", "x-1", "C@t", ""])
def test_an_ordinary_name_is_left_alone(name):
    assert cell(name) == name


@given(st.text(max_size=40))
def test_no_cell_begins_a_formula(text):
    made = cell(text)
    assert not re.match('[\\s"]*[=+@＝＋－＠-]', made)
    assert not any(one in made for one in "\r\n\t")


@pytest.mark.parametrize("evil", INJECTIONS)
def test_a_report_shows_strangers_text_and_nothing_comes_of_it(evil):
    failure = Failure("exception", "value", evil, evil, evil, evil, "", evil, 3, evil)
    made = one("x", evil, failed("merge_state", failure, evil), passed("merge_states", advice=[evil]))
    made.grade.lessons[0].title = made.grade.isolation = made.grade.instruments = evil
    made.grade.versions = {evil: evil}
    made = replace(made, refused=(evil,), files={evil: evil}, made_with={"seed_sha256": evil})
    text = student.report(made, Points())
    assert {"link_open", "image", "html_block", "html_inline", "em_open", "s_open"}.isdisjoint(
        token.type for token in tokens(text)
    )
    assert sum(token.type == "heading_open" and token.tag == "h1" for token in tokens(text)) == 1
    assert all(len(row) == 8 for row in rows(text) if row[0] == "merge_state")


def rows(text):
    """The rows of every table in the document, as lists of what is shown in a cell."""
    found, row = [], []
    for token in PARSER.parse(text):
        if token.type == "tr_open":
            row = []
        elif token.type == "inline":
            row.append("".join(child.content for child in token.children))
        elif token.type == "tr_close":
            found.append(row)
    return found


def test_a_report_says_how_far_each_exercise_came():
    text = student.report(CLASS[3], Points())
    assert "**0 of 4 exercises passed, 12 of 40 points.**" in text
    row = next(row for row in rows(text) if row[0] == "merge_state")
    assert row == ["merge_state", "FAIL", "6 of 10", "passed", "passed", "FAILED", "undecided", "undecided"]


def test_a_report_shows_the_first_failure_of_each_exercise_and_what_to_do():
    text = student.report(CLASS[1], Points())
    for part in (
        "- **called**: `merge_state(v_a[5, 3, 80] float16",
        "- **got**: `v[3, 1, 17] = 0.8123 (worst of 1,200; 1,150 are off)`",
        "- **expected**: `v[3, 1, 17] = 0.6602`",
        "- **likely**: exp was used where s is in base 2: the weights are pushed apart. Use tl.exp2.",
        "- **read**: `content/l4_merge_states.md#exp-on-a-base-2-s`",
        "- **also**: 6 more tests of `merge_states` failed",
        "1. Fix `merge_states` first. To grade it on your own machine: `python grade.py l4.merge_states`\n",
        "2. Not started: `merge_state_in_place`, `variable_length_merge_states`.",
        "Isolation bwrap, instruments on",
        "triton 3.7.1, torch 2.13.0",
        "| `l4_merge_states.py` | `" + "3f2a91c8" * 8 + "` |",
    ):
        assert part in text


def test_a_public_seed_is_part_of_the_command():
    made = one("x", "x", failed("merge_state", WRONG_VALUE, "t"), seed=1)
    assert "`python grade.py l4.merge_state --seed 1`" in student.report(made, Points())


def test_a_report_of_what_could_not_be_graded_says_why():
    assert "could not be graded**:\n\n- there is no file of a lesson" in student.report(CLASS[8], Points())
    assert "- link.py is a link" in student.report(CLASS[8], Points())
    assert "## What to do next\n\n1. Hand in the lesson's file itself" in student.report(CLASS[8], Points())
    renamed = student.report(replace(CLASS[8], problem="its name begins or ends with a blank" + RENAME), Points())
    assert "1. Hand it in again in a folder whose name is made of letters" in renamed
    assert "1. Nothing is yours to do" in student.report(CLASS[9], Points())
    assert "the grader failed: no memory" in student.report(CLASS[9], Points())
    syntax = student.report(CLASS[7], Points())
    assert "Not graded: syntax error, line 14: unmatched ')'" in syntax
    assert "\ny = helper(x))\n" in syntax
    assert "Put `l4_merge_states.py` right" in syntax


def test_a_report_says_why_what_passed_does_not_count():
    assert "- `merge_state`: the result does not come from Triton kernels, so no level of it counts." in student.report(
        CLASS[6], Points()
    )
    off = result("merge_state", edge="failed")
    off.levels["traffic"] = LevelResult("off", "needs the interpreter's recorder")
    assert "- traffic was off (needs the interpreter's recorder): its points go to the other levels." in student.report(
        one("x", "x", off), Points()
    )


def statistics(*submissions):
    found = Statistics()
    for submission in submissions:
        found.add(submission, Points())
    return found


def test_the_class_in_words():
    text = class_report.report(statistics(*CLASS), Points())
    for part in (
        "10 submissions:",
        "- 1 passed every exercise",
        "- 2 have right values in some exercises",
        "- 3 begun, with no right values yet",
        "- 1 not started",
        "- 3 could not be graded: see problems.txt",
        "- 2 of 6 in l4: exp was used where s is in base 2\n",
        "- 1 of 6 in l4: an access outside a tensor\n",
        "| `l4.merge_state` | 2 | 4 | 1 | 3 |",
        "| `l4.merge_state` | 4 of 6 (67 %) | 3 of 4 (75 %) |",
        "| head size 80 | memory | `l4.merge_state` | 0 of 1 (0 %) |",
        "- Median time to grade one: 2.0 s",
        "- Median 0 of 40 points, of the 7 that could be graded",
    ):
        assert part in text, part


def test_an_empty_class_is_a_report_too():
    assert class_report.report(statistics(), Points()) == "# The class\n\nThere is no submission.\n"


@pytest.mark.parametrize("evil", INJECTIONS)
def test_the_class_report_shows_strangers_text_and_nothing_comes_of_it(evil):
    failure = Failure("wrong_value", "value", likely=evil, mistake=evil)
    tests = [TestResult("t", evil, "merge_state", "value", "failed", failure)]
    text = class_report.report(statistics(one("x", evil, result("merge_state", tests, value="failed"))), Points())
    assert {"link_open", "image", "html_block", "html_inline", "em_open", "s_open"}.isdisjoint(
        token.type for token in tokens(text)
    )
    assert L4.split("_")[0] in text
