"""What an untrusted process says is checked field by field, and what it prints is safe to show."""

import os
import signal

import pytest

from drills.instruments.notes import Finding, Launch, Notes, Traffic
from drills.sandbox.checked import build
from drills.sandbox.client import reply_of
from drills.sandbox.layout import Malformed, Oversized
from drills.sandbox.outcome import Ended, Raised, clean, died, malformed
from drills.sandbox.wire import Message

LAUNCH = Launch("k", 3, (2, 1, 1), {"x": "*fp32"}, {"B": 16}, ["x"], traffic={"x": Traffic(loaded=8)})
NOTES = Notes([LAUNCH], [Finding("race", "two programs wrote v[0]", line=7)], "", 0.5)


def test_notes_arrive_as_they_were():
    assert build(Notes, NOTES.to_json()) == NOTES


def test_text_in_notes_is_cleaned():
    tree = Notes(findings=[Finding("race", "\x1b[31mred", likely="\x07")]).to_json()
    assert build(Notes, tree, clean).findings == [Finding("race", "red")]


def changed(**fields):
    """A launch with some fields replaced, inside notes."""
    return {**NOTES.to_json(), "launches": [{**NOTES.to_json()["launches"][0], **fields}]}


DEEP: list = []
for _ in range(40):
    DEEP = [DEEP]

FORGERIES = {
    "nothing": None,
    "a list": [],
    "a field too many": {**NOTES.to_json(), "verdict": "passed"},
    "a launch that is text": {"launches": ["k"]},
    "findings that are no list": {"findings": {"kind": "race"}},
    "a finding without words": {"findings": [{"kind": "race"}]},
    "a line that is text": changed(line="3"),
    "a line that is a boolean": changed(line=True),
    "a grid of text": changed(grid=["2"]),
    "traffic of text": changed(traffic={"x": {"loaded": "8"}}),
    "traffic of floats": changed(traffic={"x": {"loaded": 8.5}}),
    "divisible by a number": changed(divisible=[1]),
    "constants nested without end": changed(constants={"B": DEEP}),
    "a line that is no number of a line": changed(line=10**4000),
    "a byte count without end": changed(traffic={"x": {"loaded": 10**4000}}),
    "a constant without end": changed(constants={"B": [-(10**4000)]}),
    "seconds that are no number": {**NOTES.to_json(), "seconds": float("nan")},
    "seconds without end": {**NOTES.to_json(), "seconds": 10**400},
    "seconds of text": {**NOTES.to_json(), "seconds": "0"},
}


@pytest.mark.parametrize("tree", FORGERIES.values(), ids=FORGERIES)
def test_forged_notes_are_malformed(tree):
    with pytest.raises(Malformed):
        build(Notes, tree)


@pytest.mark.parametrize("finding, loaded", [(Finding("<b>=1+1", "odd"), 8), (Finding("race", "so"), -8)])
def test_notes_with_an_odd_kind_or_a_negative_count_are_malformed(finding, loaded):
    launch = Launch("k", 3, (1, 1, 1), {}, {}, [], traffic={"x": Traffic(loaded=loaded)})
    with pytest.raises(Malformed):
        reply_of(Message({"notes": Notes([launch], [finding]).to_json()}, ((), [])))


@pytest.mark.parametrize("tree", [None, [], "text", {"line": "3"}, {"line": True}, {"line": -1}, {"line": 10**4000}])
def test_forged_exceptions_are_malformed(tree):
    with pytest.raises(Malformed):
        Raised.from_json(tree)


def test_an_exception_is_cleaned_and_cut():
    raised = Raised.from_json({"type": "E\x1b[1m", "message": "m" * 9999, "line": None, "source": 5})
    assert raised.type == "E" and len(raised.message) < 2100 and raised.source == "5"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1bPq\x1b\\x", "qx"),
        ("one\rtwo\r\n", "one\ntwo\n"),
        ("a\x00b\x08c\x9bd", "abcd"),
        ("\u202egnp.exe\u2069", "gnp.exe"),
        ("\ud800", ""),
    ],
)
def test_no_control_character_reaches_the_screen(text, shown):
    assert clean(text) == shown


def test_long_text_is_cut_and_says_so():
    assert clean("x" * 100, 10) == "x" * 10 + "\n… (cut)"


@pytest.mark.parametrize(
    "ended, kind, words",
    [
        (Ended(7 << 8), "exit", "exit code 7"),
        (Ended(int(signal.SIGSEGV)), "crash", "your kernel read outside a tensor and the process died (SIGSEGV)"),
        (Ended(int(signal.SIGRTMIN) + 3), "crash", "signal"),
        (Ended(int(signal.SIGKILL), "memory"), "memory", "more memory"),
        (Ended(int(signal.SIGKILL), "processes"), "processes", "more processes"),
        (None, "malformed", "closed its connection"),
    ],
)
def test_every_end_has_words(ended, kind, words):
    death = died(ended)
    assert death.kind == kind and words in death.words
    assert bool(death.signal) == (kind == "crash")


def test_an_oversized_answer_is_not_called_malformed():
    assert malformed(Oversized("a tensor of shape [9]")).kind == "oversized"
    assert malformed(Malformed("noise")).kind == "malformed"


def test_wait_statuses_are_the_systems_own():
    assert "exit code 5" in died(Ended(os.system("exit 5"))).words
