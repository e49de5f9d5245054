"""Whole screens, as a learner sees them, against what is kept in screens/. `UPDATE_SCREENS=1` writes them anew."""

import io
import json
import os
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from sample_grades import SCREENS

from drills.report import json_file, verdict
from drills.report.console import open_console
from drills.report.scorecard import print_scorecard

KEPT = Path(__file__).parent / "screens"
COMMANDS = frozenset({"hint", "show"})
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def screen(name, width, color=False, plain=False):
    """The scorecard of a sample grade as printed text."""
    console = open_console(file=io.StringIO(), plain=plain)
    console.width = width
    if color:
        console._color_system = 1  # as on a terminal of 16 colours
    print_scorecard(SCREENS[name], console, COMMANDS)
    return console.file.getvalue()


def check(kept, text):
    if os.environ.get("UPDATE_SCREENS"):
        KEPT.mkdir(exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8"), "the screen changed: look at it, then UPDATE_SCREENS=1"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_kept(name, width):
    check(KEPT / f"{name}.{width}.txt", screen(name, width))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_the_coloured_screen_is_as_kept(name, width):
    check(KEPT / f"{name}.{width}.ansi", screen(name, width, color=True))


@pytest.mark.parametrize("name", SCREENS)
def test_colour_adds_no_words(name):
    assert ESCAPE.sub("", screen(name, 80, color=True)) == screen(name, 80)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("name", SCREENS)
def test_nothing_is_wider_than_the_screen(name, width):
    for line in screen(name, width).split("\n"):
        assert cell_len(line) <= width, line
        assert line == line.rstrip(), line


@pytest.mark.parametrize("name", SCREENS)
def test_plain_is_ascii_and_no_graded_text_reaches_the_terminal_raw(name):
    assert screen(name, 80, plain=True).isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", screen(name, 80))


@pytest.mark.parametrize("name", SCREENS)
def test_the_last_line_counts(name):
    last = screen(name, 80).rstrip("\n").split("\n")[-1]
    assert re.search(r"passed|begun|The grader failed", last)


@pytest.mark.parametrize("name", SCREENS)
def test_json_holds_the_verdicts_of_the_screen(name, tmp_path):
    json_file.write(SCREENS[name], tmp_path / "out.json")
    tree = json.loads((tmp_path / "out.json").read_text())
    assert (tree["schema"], tree["exit_code"]) == (1, verdict.exit_code(SCREENS[name]))
    states = {one["name"]: one["state"] for lesson in tree["lessons"] for one in lesson["exercises"]}
    shown = screen(name, 200)
    for exercise, state in states.items():
        if re.search(rf"^  {exercise} ", shown, re.MULTILINE):
            word = {"passed": "PASS", "failed": "FAIL", "missing": "FAIL", "not started": "not started"}[state]
            assert re.search(rf"^  {exercise} +{word}\b", shown, re.MULTILINE)
    assert tree["passed"] == sum(state == "passed" for state in states.values())


EXIT_CODES = {"all_passed": 0, "on_a_gpu": 0, "grader_failed": 3, "all_not_started": 5, "missing_file": 5}


@pytest.mark.parametrize("name", SCREENS)
def test_the_exit_code_says_what_the_screen_says(name):
    assert verdict.exit_code(SCREENS[name]) == EXIT_CODES.get(name, 1)
