"""What `watch` does at a key and while it waits, with doubles for the screen and for the process that grades."""

import io
from types import SimpleNamespace

import pytest
from sample_watch import ALL, NAMES_4, state

from drills.errors import WrongUse
from drills.report.console import open_console
from drills.study import watch_loop
from drills.study.watch_files import Snapshot
from drills.study.watch_loop import Loop
from drills.study.watch_view import CLEAR, REWRITE, Screen


class Engine:
    facts = {"timeout": 2.5}
    ready = True

    def __init__(self):
        self.asked = []

    def ask(self, job):
        self.asked.append(job)


@pytest.fixture
def loop():
    console = open_console(file=io.StringIO())
    console.width = 80
    hints = []

    def hint(lesson, exercise):
        hints.append(f"{lesson}.{exercise}")
        return len(hints) < 3

    view = Screen(console, keyed=True)
    made = Loop(state(begun=NAMES_4[:1]), view, None, Engine(), SimpleNamespace(), hint, lambda: None)
    made.hints = hints
    view.draw(made.state)
    return made


def last_line(loop):
    return loop.view.console.file.getvalue().rpartition(REWRITE)[2].strip()


def test_after_the_last_hint_the_foot_promises_no_other(loop):
    feet = []
    for _ in range(3):
        loop.key("h")
        feet.append(last_line(loop).split(" · ")[0])
    assert feet == ["h the next hint", "h the next hint", "h the same again"]
    assert loop.hints == ["l4.merge_state"] * 3


@pytest.mark.parametrize("page", ["h", "l"])
@pytest.mark.parametrize("key", ["r", "n", "l", "x"])
def test_on_another_page_any_key_is_the_way_back_and_no_more(loop, page, key):
    loop.key(page)
    assert last_line(loop).endswith("q quit · any other key: back")
    loop.key(key)
    assert not loop.view.covered
    assert loop.state.exercise == "merge_state"
    assert loop.engine.asked == []


def test_h_on_the_list_is_the_way_back_too(loop):
    loop.key("l")
    loop.key("h")
    assert not loop.view.covered
    assert loop.hints == []


def test_q_ends_it_on_every_page(loop):
    loop.key("l")
    loop.key("q")
    assert loop.over


def test_a_hint_that_is_not_to_be_had_is_said(loop):
    def none(*_):
        raise WrongUse("content/l4.md has no hints")

    loop.hint = none
    loop.key("h")
    assert " content/l4.md has no hints\n" in loop.view.console.file.getvalue().rpartition(CLEAR)[2]


def test_the_hint_is_for_the_next_exercise_where_this_one_has_passed(loop):
    loop.state.graded(ALL, True)
    loop.state.passed.clear()
    loop.state.results.pop(("l4_merge_states", "merge_state_in_place"), None)
    loop.key("h")
    assert loop.hints == ["l4.merge_state_in_place"]


def test_a_call_that_takes_long_is_said_to_have_a_limit_once(loop, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(watch_loop.time, "monotonic", lambda: now[0])
    loop.heard({"title": "merge_state · " + "a long title of a test " * 5, "done": 0, "total": 24})
    now[0] += 2.9
    loop.say_if_slow()
    assert "a call may take" not in last_line(loop)
    now[0] += 0.2
    loop.say_if_slow()
    assert last_line(loop).startswith("grading merge_state · a long")
    assert last_line(loop).endswith("… 0 of 24 · a call may take 2.5 s")
    before = loop.view.console.file.getvalue()
    loop.say_if_slow()
    assert loop.view.console.file.getvalue() == before


def test_a_slow_call_takes_the_verdict_of_the_text_before_off_the_screen(loop, monkeypatch):
    monkeypatch.setattr(watch_loop.time, "monotonic", lambda: 100.0)
    loop.state.graded(ALL, True)
    loop.files = SimpleNamespace(now={"l4_merge_states": Snapshot(loop.state.file.source, {"merge_state": "newer"})})
    loop.saved("l4_merge_states")
    assert loop.state.state_of("merge_state") == "passed"
    loop.heard({"title": "merge_state · two states", "done": 0, "total": 24})
    loop.since -= watch_loop.SLOW
    loop.say_if_slow()
    assert "> merge_state                   ...\n" in loop.view.console.file.getvalue().rpartition(CLEAR)[2]
    assert last_line(loop).endswith("a call may take 2.5 s")


def test_a_verdict_of_the_text_is_kept_however_long_the_rest_takes(loop):
    loop.state.saved("l4_merge_states", Snapshot(loop.state.file.source, {"merge_state": "newer"}))
    loop.state.graded(ALL, False)
    loop.state.drop_outdated()
    assert loop.state.state_of("merge_state") == "passed"
