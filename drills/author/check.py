"""`grade.py check`: everything that must hold of the lessons themselves, for authors and for CI.

Each check is a function that returns what is wrong, a line each. Must never change a file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console

from drills import catalog, source
from drills.author import answers, matrix, pages, stubs
from drills.catalog import ROOT, Entry, Selection
from drills.errors import FAILED, PASSED
from drills.report import verdict
from drills.report.model import LEVELS, ExerciseResult, Grade

EXTRA_PAGES = frozenset({"performance.md", "fast_cascade.md"})
"""Pages in content/ that belong to no lesson: what was measured, and how the fast cascade came about."""

SECOND = re.compile(r"_fast$")


@dataclass(frozen=True)
class Check:
    """One thing that must hold: its name and what finds it broken. slow: it runs graded code."""

    name: str
    problems: Callable[..., list[str]]
    slow: bool = False


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--quick", action="store_true", help="only what runs no graded code")
    parser.add_argument(
        "--answers", nargs="*", metavar="LESSON", help="grade these lessons' known answers (default: all)"
    )
    parser.add_argument(
        "--sample", type=_count, default=1, metavar="N", help="one in N of the wrong known answers, and all right ones"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Prints a line a check and what is wrong under it; 0 if nothing is."""
    wrong = 0
    for check in CHECKS:
        if options.quick and check.slow:
            continue
        chosen = (options.answers, options.sample) if check.problems is known_answers else ()
        found = check.problems(*chosen)
        wrong += len(found)
        console.print(f" {'ok     ' if not found else 'PROBLEM'} {check.name}", highlight=False)
        for line in found:
            console.print(f"         {line}", highlight=False, markup=False, soft_wrap=True)
    console.print(f" {wrong} problems" if wrong else " all holds", highlight=False)
    return FAILED if wrong else PASSED


def layout() -> list[str]:
    """A lesson's five files are there, and nothing else is in the lessons' folders."""
    found = [f"{one.stem} lacks {name}" for one in catalog.lessons() for name in one.missing]
    found += [f"mine/{one.stem}.py is missing" for one in catalog.lessons() if not one.mine.is_file()]
    return found + list(strays())


def strays() -> Iterator[str]:
    """Files in the lessons' folders that belong to no lesson."""
    stems = {one.stem for one in catalog.lessons()}
    for folder, prefix in (("content", ""), ("solutions", ""), ("mine", ""), ("tests", "test_")):
        for path in sorted((ROOT / folder).glob("*.*")):
            stem = SECOND.sub("", path.stem.removeprefix(prefix)) if folder != "mine" else path.stem
            hidden = path.name.startswith(".") or path.name in EXTRA_PAGES or path.name == "conftest.py"
            if path.is_file() and not hidden and stem not in stems:
                yield f"{folder}/{path.name} belongs to no lesson"


def stubs_not_started() -> list[str]:
    """Stubs are what the generator makes, and an untouched one counts as not started."""
    found = stubs.problems()
    for lesson in catalog.lessons():
        state = source.inspect(lesson.mine, lesson.exercises, lesson.stub)
        found += [
            f"mine/{lesson.stem}.py: {name} is {state.function(name).state}, not untouched"
            for name in lesson.exercises
            if state.function(name).state != "untouched"
        ]
    return found


def solutions_pass() -> list[str]:
    """The solutions pass at every level, on the interpreter and on a GPU if there is one."""
    from drills import session
    from drills.author import widths
    from drills.request import Request
    from drills.run import load_facts

    chosen = tuple(Selection(one, one.exercises) for one in catalog.lessons())
    grades = [session.grade(Request(chosen, ROOT / "solutions", device="cpu", timeout=answers.PATIENCE))]
    if _has_gpu():
        grades.append(session.grade(Request(chosen, ROOT / "solutions", device="cuda", timeout=answers.PATIENCE)))
    wrong = [line for grade in grades for line in _not_passed(grade)]
    for result, one in zip(grades[0].lessons, chosen, strict=True):
        wrong += widths.problems(result, load_facts(one.lesson))
    return wrong


def _has_gpu() -> bool:
    import torch

    return torch.version.cuda is not None and torch.cuda.device_count() > 0


def _not_passed(grade: Grade) -> Iterator[str]:
    if grade.grader_error:
        yield f"{grade.device}: {grade.grader_error}"
    for lesson, exercise in verdict.exercises(grade):
        if exercise.state != "passed":
            yield f"{grade.device}: solutions/{lesson.stem}.py: {exercise.name} is {exercise.state}{_why(exercise)}"
            short = lesson.stem.split("_", 1)[0]
            yield f"{grade.device}: to repeat: grade.py {short}.{exercise.name} --solutions --seed {grade.seed}"
        untested = [one for one in LEVELS if exercise.levels.get(one) and exercise.levels[one].state == "none"]
        if grade.device == "cpu" and set(untested) - {"traffic"}:
            yield f"{lesson.stem}: no test of {exercise.name} at the level {', '.join(untested)}"


def _why(exercise: ExerciseResult) -> str:
    """What the failed test to look at saw, to be put behind the state; "" if none failed."""
    test = verdict.first_failed_test(exercise)
    if test is None or test.failure is None:
        return ""
    saw = test.failure
    return f" in '{test.title}': {saw.called}: {saw.got}; expected {saw.expected}"


def answers_listed() -> list[str]:
    """Every lesson has enough known answers, and their table is current."""
    found = [line for lesson in catalog.lessons() for line in _too_few(lesson)]
    return found if matrix.is_current() else [*found, f"{matrix.TABLE.name}: python -m drills.author.matrix --table"]


def known_answers(lessons: list[str] | None, sample: int = 1) -> list[str]:
    """The known answers of these lessons (None: of all) come out as they must; of the wrong ones, one in `sample`."""
    stems = ["*"] if lessons is None else [catalog.find(name).lesson.stem for name in lessons]
    return matrix.problems(list(answers.grade([one for stem in stems for one in sampled(stem, sample)])))


def sampled(stem: str, one_in: int) -> list[answers.Answer]:
    """All right answers of a lesson and one in so many of its wrong ones, always the same."""
    return answers.find(stem, "right") + answers.find(stem, "wrong")[::one_in]


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of at least 1")
    return value


def _too_few(lesson: Entry) -> Iterator[str]:
    for kind, least in (("right", 3), ("wrong", 15)):
        there = len(answers.find(lesson.stem, kind))
        if there < least:
            yield f"{lesson.stem} has {there} {kind} answers, and a lesson has at least {least}"


CHECKS = (
    Check("layout: five files a lesson, nothing stray", layout),
    Check("stubs: current and not started", stubs_not_started),
    Check("pages: sections, hints, links, numbers, self-checks", pages.problems),
    Check("known answers: enough of each, table current", answers_listed),
    Check("solutions: pass at every level", solutions_pass, slow=True),
    Check("known answers: right ones pass, wrong ones fail as they must", known_answers, slow=True),
)
