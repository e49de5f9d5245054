"""States of `watch` and findings of `doctor`, for the tests of their screens."""

from pathlib import Path

from sample_grades import COMPILE, NAMES, WRONG_VALUE, failed, grade, lesson, passed

from drills.catalog import Entry, Selection
from drills.report.model import Grade
from drills.source import Function, Problem, Source
from drills.study.doctor_checks import Finding
from drills.study.watch_files import Snapshot
from drills.study.watch_state import State


def selection(stem: str) -> Selection:
    """A lesson of a repository that needs not be there."""
    title, names = NAMES[stem]
    entry = Entry(stem, Path("/nowhere"))
    entry.__dict__["title"] = title
    return Selection(entry, names)


def file(stem: str, *begun: str, problem: Problem | None = None) -> Snapshot:
    """A learner's file of which these exercises are begun."""
    names = () if problem else NAMES[stem][1]
    functions = [Function(name, "written" if name in begun else "untouched", 12) for name in names]
    source = Source(Path(f"{stem}.py"), functions=tuple(functions), problem=problem)
    return Snapshot(source, {name: name in begun and "code" or "" for name in names})


def state(*verdicts: tuple[Grade, bool], begun: tuple[str, ...] = (), problem: Problem | None = None, **more) -> State:
    """A state after these verdicts on l4; the second of each: whether it is whole."""
    files = {stem: file(stem) for stem in NAMES} | {"l4_merge_states": file("l4_merge_states", *begun, problem=problem)}
    facts = {"stem": "l4_merge_states", "exercise": "merge_state"} | more
    made = State([selection(stem) for stem in NAMES], files, set(), **facts)
    for given, whole in verdicts:
        made.graded(given, whole)
    return made


NAMES_4 = NAMES["l4_merge_states"][1]
WRONG = failed("merge_state", WRONG_VALUE, "two states merge as one", others=6)
ALL = grade(lesson("l4_merge_states", *map(passed, NAMES_4)))


def alone(result) -> Grade:
    """The first verdict: one exercise."""
    whole = grade(lesson("l4_merge_states", result))
    whole.lessons[0].exercises = [result]
    return whole


STATES = {
    "watch_not_started": lambda: state(),
    "watch_first_failed": lambda: state((alone(WRONG), False), begun=NAMES_4[:2]),
    "watch_first_passed": lambda: state((alone(passed("merge_state")), False), begun=NAMES_4[:2]),
    "watch_half_done": lambda: state(
        (grade(lesson("l4_merge_states", passed("merge_state"), failed("merge_states", COMPILE, "compiles"))), True),
        begun=("merge_state", "merge_states"), exercise="merge_states",
    ),
    "watch_exercise_passed": lambda: state(
        (grade(lesson("l4_merge_states", passed("merge_state"))), True), begun=("merge_state",)
    ),
    "watch_all_passed": lambda: state(
        (grade(lesson("l1_online_softmax", *map(passed, NAMES["l1_online_softmax"][1]))), True), (ALL, True),
        begun=NAMES_4,
    ),
    "watch_syntax_error": lambda: state(problem=Problem("syntax", "unmatched ')'", 14, 18, "    y = helper(x))")),
    "watch_file_missing": lambda: state(problem=Problem("missing", "is not there")),
    "watch_unreadable": lambda: state(problem=Problem("unreadable", "cannot be read: Permission denied")),
    "watch_grader_failed": lambda: state(
        begun=NAMES_4[:1], trouble="The grader failed: no memory  (python grade.py doctor  shows whether it is fit)"
    ),
}  # fmt: skip


FIT = [
    Finding("ok", "Python 3.11.7 at /home/ada/drills/.venv/bin/python"),
    Finding("ok", "torch 2.13.0, triton 3.7.1, numpy 2.4.6: tested together"),
    Finding("ok", "a kernel runs in the interpreter, and tl.max, tl.dot and bfloat16 come out right"),
    Finding("ok", "isolation: graded code runs under landlock"),
    Finding("note", "isolation bwrap is not to be had: bubblewrap is not installed", "apt install bubblewrap"),
    Finding("note", "no GPU: kernels run in the interpreter, which is all that the drills need"),
    Finding("ok", "terminal xterm-256color, 80 columns, color"),
]
UNFIT = [
    FIT[0],
    Finding("problem", "triton 3.7.1 is installed, but Python finds 3.4.0 first, in /home/ada/src/triton/python/triton",
            "take that folder off PYTHONPATH, or rename it"),
    Finding("problem", "mine/ cannot be written: reset, undo and progress need it", "chmod u+rwx mine"),
]  # fmt: skip
FINDINGS = {"doctor_fit": FIT, "doctor_unfit": UNFIT}
