"""A process that gives no answer says where it is: which loop of the graded file that is, whatever it prints."""

import pytest

from drills.sandbox import halted

TEXT = b"""\
\xef\xbb\xbfimport time


def walk(n):
    at = 0
    while at < n:
        for _ in range(3):
            at += 0
        else:
            at -= 1  # \x0c
    return at


def launch(n):
    for one in range(n):
        walk(one)
    return [walk(one) for one in range(n)]
"""
FILE = "/class/Zo\u00eb/l1.py"
QUOTED = "/class/Zo\\xeb/l1.py"

WHERE = {
    "an endless while is likelier than the for in it": ([(QUOTED, 8)], (6, "while at < n:")),
    "than the for around its call": ([(QUOTED, 11), (QUOTED, 16)], (15, "for one in range(n):")),
    "and also if the for is nearer": ([(QUOTED, 16), (QUOTED, 10)], (6, "while at < n:")),
    "no loop: the innermost line, a form feed ends none": ([(QUOTED, 11), (QUOTED, 17)], (11, "return at")),
    "frames of others do not count": ([("/lib/python/time.py", 6), (QUOTED, 16)], (15, "for one in range(n):")),
    "nobody's frames": ([("/lib/python/time.py", 6)], (None, "")),
    "no frames": ([], (None, "")),
    "a line that is not there": ([(QUOTED, 9_999)], (None, "")),
    "nor is there one before the first": ([(QUOTED, 0)], (None, "")),
}


@pytest.mark.parametrize("what", WHERE)
def test_the_loop_that_does_not_end(what):
    frames, found = WHERE[what]
    assert halted.place(frames, FILE, TEXT) == found


@pytest.mark.parametrize("text", [b"", b"def f(:\n", b"\xff\xfe", b"x = 1\n"])
def test_a_file_without_such_a_line(text):
    assert halted.place([(QUOTED, 3)], FILE, text) == (None, "")


def test_a_file_that_takes_long_to_read_is_not_looked_through(monkeypatch):
    """At every late call, while nobody else is graded: then the line itself will do."""
    large = TEXT + b"x = [" + b"0," * halted.LARGEST + b"]\n"
    monkeypatch.setattr(halted.source, "parse", lambda text: pytest.fail("was parsed"))
    assert halted.place([(QUOTED, 8)], FILE, large) == (8, "at += 0")


def test_however_many_frames_a_file_is_looked_through_once(monkeypatch):
    walks, walk = [], halted.ast.walk
    monkeypatch.setattr(halted.ast, "walk", lambda tree: walks.append(tree) or walk(tree))
    assert halted.place([(QUOTED, 8), (QUOTED, 7), (QUOTED, 16)] * 60, FILE, TEXT) == (6, "while at < n:")
    assert len(walks) == 1


def test_what_was_printed_and_where_it_is_are_told_apart():
    answer = f'Stack (most recent call first):\n  File "{QUOTED}", line 8 in walk\n  File "{QUOTED}", line 1'
    assert halted.parted("at 1\nat 2" + answer) == ("at 1\nat 2", [(QUOTED, 8)])
    assert halted.parted("nothing but prints\n") == ("nothing but prints\n", [])
    assert halted.parted(halted.OPENING + '\nwhatever\n  File "x", line 99999999999 in f\n') == ("", [])
