"""Answers that attack the grader, and right ones between them: what must become of each stands in its header.

Those whose fate depends on the level, at the two strictest levels that this machine has; with `HOSTILE=all` in the
environment (weekly) at every level, and all answers at the strictest. They are graded on lesson 4 with few tests; a
batch of them is in test_batch_hostile.
"""

import ast
import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
import small_lesson_4

from drills import session
from drills.catalog import ROOT
from drills.request import Request
from drills.sandbox import isolation
from drills.sandbox.isolation import Isolation
from drills.sandbox.limits import family
from drills.sandbox.nursery import Nursery

FOLDER = ROOT / "tests" / "answers" / "hostile" / small_lesson_4.STEM
TELLING = (
    "control_plain", "exit_", "survive", "kill_", "bomb_processes", "bomb_disk", "hang_stopped", "look_at_the_",
    "network", "write_", "patch_recorder", "reply_forged", "trace_the_parent", "compute_in_a_thread",
)  # fmt: skip
TIMEOUT = 1.5
MARK = "hostile-was-here"
ALL = os.environ.get("HOSTILE") == "all"

RIGHT = (FOLDER / "control_plain.py").read_bytes()
ODD = {
    "empty": (b"", "missing"),
    "only a BOM": (b"\xef\xbb\xbf", "missing"),
    "binary": (bytes(range(256)) * 20, "failed"),
    "a NUL": (RIGHT + b"\0", "failed"),
    "not UTF-8": (RIGHT + b"# \xff\xfe\n", "failed"),
    "no such encoding": (b"# coding: klingon\n" + RIGHT, "failed"),
    "a codec that makes no text": (b"# coding: rot13\n" + RIGHT, "failed"),
    "nested too deeply": (b"x = " + b"(" * 5000 + b")" * 5000 + b"\n" + RIGHT, "failed"),
    "a long chain": (b"x = " + b"-" * 200_000 + b"1\n" + RIGHT, "failed"),
    "a chain as long as Python takes": (RIGHT + b"\nx = 1" + b" + 1" * 900 + b"\n", "failed"),
    "many functions, each named by the one before": (
        RIGHT + b"".join(b"\ndef f%d(): f%d" % (at, at + 1) for at in range(3000)) + b"\nf0\n",
        "passed",
    ),
    "larger than is read": (RIGHT + b"#" * (2 << 20), "failed"),
    "BOM and CRLF": (b"\xef\xbb\xbf" + RIGHT.replace(b"\n", b"\r\n"), "passed"),
    "characters at which only some end a line": (b"\x0c\n# \x1c \xe2\x80\xa8 \xc2\x85\n" + RIGHT, "passed"),
    "large, but right": (RIGHT + b"# " + b"x" * 900_000 + b"\n", "passed"),
}


def header(file):
    """Its keys and values: expect, kind, levels."""
    last = ast.get_docstring(ast.parse(file.read_bytes())).split("\n\n")[-1]
    return dict(line.split(": ", 1) for line in last.splitlines())


CORPUS = {file.stem: (file, header(file)) for file in sorted(FOLDER.glob("*.py"))}
HERE = [one.name for one in isolation.probe() if one.holds]


def cases():
    for level in isolation.LEVELS:
        for name, (_, stated) in CORPUS.items():
            chosen = (ALL and level == HERE[0]) or (name.startswith(TELLING) and (ALL or level in HERE[:2]))
            if chosen and level in stated.get("levels", level).split():
                yield pytest.param(level, name, id=f"{level}-{name}")


@pytest.fixture(scope="module")
def selection(tmp_path_factory):
    return small_lesson_4.build(tmp_path_factory.mktemp("lesson"))


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory):
    """One a level, started when it is first asked for; the strong ones leave nothing in the temporary files' folder."""
    session.prepare()
    started = {}

    def get(level):
        if level not in started:
            scratch = tmp_path_factory.mktemp(level)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(tempfile, "tempdir", str(scratch))
                started[level] = Nursery(Isolation.named(level)), scratch
        return started[level][0]

    yield get
    for nursery, _ in started.values():
        nursery.close()
    left = {level: os.listdir(scratch) for level, (_, scratch) in started.items() if level in isolation.STRONG}
    assert not any(left.values()), left


def graded(selection, nursery, target):
    """The lesson's result, and its first failure if there is one."""
    request = Request(
        (selection,),
        target,
        device="cpu",
        timeout=TIMEOUT,
        isolation=nursery.isolation,
        explaining=-1.0,
        gate_cache=target / "kept",
    )
    grade = session.grade(request, nursery)
    assert grade.grader_error == "" and grade.isolation == nursery.isolation.name
    lesson = grade.lessons[0]
    failures = [test.failure for test in lesson.exercises[0].tests if test.outcome != "passed" and test.failure]
    return lesson, ([lesson.problem] if lesson.problem else failures)


def survivors(nursery):
    """Processes below the nursery beyond its zygotes (and bubblewrap itself), after some time to bury the last."""
    expected = 4 if nursery.isolation.name == "bwrap" else 3
    deadline = time.monotonic() + 10
    while True:
        alive = [pid for pid in family(nursery.pid) if state(pid) not in "ZX"]
        if len(alive) <= expected or time.monotonic() > deadline:
            return alive[expected:]
        time.sleep(0.02)


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@pytest.mark.parametrize("level, name", list(cases()))
def test_what_must_become_of_it(selection, nurseries, tmp_path, level, name):
    if level not in HERE:
        pytest.skip(f"{level}: {isolation.probe_one(level).reason}")
    nursery = nurseries(level)
    file, stated = CORPUS[name]
    copy = tmp_path / f"{small_lesson_4.STEM}.py"
    copy.write_bytes(file.read_bytes())
    lesson, failures = graded(selection, nursery, tmp_path)
    assert lesson.exercises[0].state == stated["expect"], failures[:1]
    if "kind" in stated:
        assert failures[0].kind == stated["kind"], failures[0]
    assert all(text_is_clean(failure) for failure in failures)
    assert survivors(nursery) == []
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == lesson.sha256
    assert not [folder for folder in sys.path if os.path.exists(os.path.join(folder, MARK))]


def text_is_clean(failure):
    """Nothing in it that a terminal obeys, and not so much that nobody reads it."""
    text = " ".join(str(getattr(failure, part)) for part in ("called", "got", "expected", "likely", "source"))
    return len(text) < 10_000 and not any(mark in text for mark in "\x1b\x07\u202e\r\0")


@pytest.mark.parametrize("name", ODD)
def test_files_that_are_hardly_files(selection, nurseries, tmp_path, name):
    data, expected = ODD[name]
    (tmp_path / f"{small_lesson_4.STEM}.py").write_bytes(data)
    lesson, _ = graded(selection, nurseries(HERE[0]), tmp_path)
    assert lesson.exercises[0].state == expected, lesson.problem


def test_there_are_enough_attacks_with_right_answers_between_them():
    passing = [name for name, (_, stated) in CORPUS.items() if stated["expect"] == "passed"]
    assert len(CORPUS) - len(passing) >= 40 and len(passing) >= 6
