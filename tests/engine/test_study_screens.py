"""The screens of `watch` and `doctor`, as a learner sees them, against what is kept in screens/."""

import io
import re

import pytest
from rich.cells import cell_len
from sample_watch import FINDINGS, STATES
from test_screens import ESCAPE, KEPT, check

from drills.report.console import open_console
from drills.study import doctor
from drills.study.watch_view import CLEAR, REWRITE, Log, Screen

SCREENS = [*STATES, *FINDINGS]


def shown(name, width, color=False, plain=False):
    """What is on the screen once `name` has been drawn."""
    console = open_console(file=io.StringIO(), plain=plain)
    console.width = width
    if color:
        console._color_system = 1
    if name in FINDINGS:
        doctor.examine(console, [lambda: FINDINGS[name]])
    else:
        view = Screen(console, keyed=True)
        view.last = "the last line"
        view.draw(STATES[name]())
    text = console.file.getvalue()
    return text.rpartition(CLEAR)[2].replace(REWRITE, "")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_kept(name, width):
    check(KEPT / f"{name}.{width}.txt", shown(name, width))
    check(KEPT / f"{name}.{width}.ansi", shown(name, width, color=True))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("name", SCREENS)
def test_nothing_is_wider_than_the_screen(name, width):
    for line in shown(name, width).split("\n"):
        assert cell_len(line) <= width, line
        assert line == line.rstrip(), line
    assert ESCAPE.sub("", shown(name, width, color=True)) == shown(name, width)


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_fits_a_small_terminal(name):
    assert shown(name, 80).count("\n") < 24


@pytest.mark.parametrize("name", STATES)
def test_a_run_is_one_line_without_a_terminal(name):
    console = open_console(file=io.StringIO())
    view = Log(console)
    state = STATES[name]()
    if state.undecided or name == "watch_first_failed":
        view.first(state)
    view.whole(state)
    assert re.fullmatch(r"\d\d:\d\d:\d\d \S[^\n]*\n", console.file.getvalue())


def test_doctor_says_no_where_there_is_a_problem():
    console = open_console(file=io.StringIO())
    assert doctor.examine(console, [lambda: FINDINGS["doctor_fit"]]) == 0
    assert doctor.examine(console, [lambda: FINDINGS["doctor_unfit"]]) == 1


def test_a_check_that_breaks_is_a_problem_and_the_others_still_run():
    def breaks():
        raise OSError("no such device")

    console = open_console(file=io.StringIO())
    assert doctor.examine(console, [breaks, lambda: FINDINGS["doctor_fit"]]) == 1
    said = console.file.getvalue()
    assert "PROBLEM  breaks could not be looked at: OSError: no such device" in said
    assert "Python 3.11.7" in said
