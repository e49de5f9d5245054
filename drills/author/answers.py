"""Known answers: files that are known to be right or wrong, and what the grader must make of each.

    tests/answers/right/<stem>/<name>.py    a whole lesson written in another way: must pass at every level
    tests/answers/wrong/<stem>/<name>.py    one exercise with one misconception: must fail as its header says

A wrong answer's docstring ends in its header, one `key: value` a line:

    exercise: merge_states
    level: value              the level that the first failure counts against
    diagnosis: exp_for_exp2   the mistake's id, or the kind of failure where no mistake is named
    twins: other_name         wrong answers that may get the very same diagnosis (optional, separated by spaces)
    told: x.stride(0) is 1    words that the likely cause must hold (optional)

Reads these files and grades them in the worker like everything graded; must never import them.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from drills import catalog
from drills.catalog import ROOT, Selection
from drills.errors import GraderFailed
from drills.report import verdict
from drills.report.model import LEVELS, Grade
from drills.sandbox import limits

FOLDER = ROOT / "tests" / "answers"
SEED = 20_240_229
"""The matrix repeats itself: the same inputs every time, unless another seed is asked for."""


PATIENCE = 60.0
"""Seconds for one call: a machine that checks everything at once is slow."""

BATCH = 24
"""Answers that one process grades before it hands back what came out."""


@dataclass(frozen=True)
class Answer:
    """One known answer. exercise, level, diagnosis: what the header of a wrong one states; "" in a right one."""

    path: Path
    stem: str
    says: str
    exercise: str = ""
    level: str = ""
    diagnosis: str = ""
    twins: tuple[str, ...] = ()
    told: str = ""

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def right(self) -> bool:
        """Whether it must pass."""
        return not self.exercise

    @property
    def selection(self) -> Selection:
        """The exercises that it answers."""
        lesson = catalog.find(self.stem).lesson
        return Selection(lesson, (self.exercise,) if self.exercise else lesson.exercises)


@dataclass(frozen=True)
class Outcome:
    """What the grader made of an answer. level, diagnosis: of the first failure; "" if all passed.

    likely: what is said of the known mistake that was recognized; "" where none was. told: what is said in any case.
    by_chance: on other inputs than CI's: ordinary ones may show what an edge case shows for sure, at a lower level.
    """

    answer: Answer
    passed: bool
    level: str = ""
    diagnosis: str = ""
    got: str = ""
    likely: str = ""
    told: str = ""
    by_chance: bool = False

    @property
    def problem(self) -> str:
        """What is not as it must be, in one line; "" if all is well."""
        one = self.answer
        where = f"{one.path.relative_to(FOLDER)}"
        if one.right:
            return "" if self.passed else f"{where}: right, but failed at {self.level} ({self.diagnosis}): {self.got}"
        if self.passed:
            return f"{where}: wrong, but passed"
        levels = LEVELS[: LEVELS.index(one.level) + 1] if self.by_chance else (one.level,)
        if self.level not in levels or self.diagnosis != one.diagnosis:
            return f"{where}: expected {one.level}/{one.diagnosis}, came out {self.level}/{self.diagnosis}: {self.got}"
        return "" if one.told in self.told else f"{where}: expected to be told {one.told}, and was told {self.told}"


def read(path: Path) -> Answer:
    """The answer in this file. GraderFailed if its header is not as it must be."""
    kind, stem = path.parent.parent.name, path.parent.name
    try:
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    except (SyntaxError, UnicodeDecodeError) as error:
        raise GraderFailed(f"{path.name} cannot be read: {error}") from None
    says = doc.partition("\n")[0]
    if not says:
        raise GraderFailed(f"{kind}/{stem}/{path.name} has no docstring that says what it is")
    if kind == "right":
        return Answer(path, stem, says)
    header = dict(line.split(": ", 1) for line in doc.splitlines()[1:] if ": " in line)
    try:
        exercise, level, diagnosis = header["exercise"], header["level"], header["diagnosis"]
    except KeyError as missing:
        raise GraderFailed(f"{kind}/{stem}/{path.name}: its header has no {missing.args[0]}") from None
    twins = tuple(header.get("twins", "").split())
    return Answer(path, stem, says, exercise, level, diagnosis, twins, header.get("told", ""))


def find(stem: str = "*", kind: str = "*", folder: Path = FOLDER) -> list[Answer]:
    """All known answers of a lesson (right, then wrong), by name."""
    kinds = ("right", "wrong") if kind == "*" else (kind,)
    return [read(path) for one in kinds for path in sorted(folder.glob(f"{one}/{stem}/*.py"))]


def grade(answers: Iterable[Answer], jobs: int = 2, seed: int = SEED) -> Iterator[Outcome]:
    """Grades them all, in `jobs` processes side by side; outcomes come in the order of the answers."""
    answers = list(answers)
    if jobs < 2 or len(answers) < 2 * jobs:
        yield from _grade_in_turn(answers, seed)
        return
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, spawning, limits.die_with_parent, (os.getpid(),)) as pool:
        for batch in pool.map(partial(_grade_batch, seed=seed), _batches(answers)):
            yield from batch


def _batches(answers: list[Answer]) -> list[list[Answer]]:
    return [answers[at : at + BATCH] for at in range(0, len(answers), BATCH)]


def _grade_batch(answers: Sequence[Answer], seed: int) -> list[Outcome]:
    return list(_grade_in_turn(answers, seed))


def _grade_in_turn(answers: Iterable[Answer], seed: int) -> Iterator[Outcome]:
    """One after the other; one zygote serves them all."""
    from drills.request import Request
    from drills.sandbox.nursery import Nursery
    from drills.session import grade as grade_one
    from drills.session import prepare

    prepare()
    nursery = Nursery()
    try:
        for answer in answers:
            with tempfile.TemporaryDirectory(prefix="answer-") as folder:
                shutil.copyfile(answer.path, Path(folder) / f"{answer.stem}.py")
                request = Request(
                    (answer.selection,),
                    Path(folder),
                    device="cpu",
                    timeout=PATIENCE,
                    explaining=PATIENCE,
                    seed=seed,
                    every_twin=True,
                    name=answer.name,
                    gate=answer.right or answer.level == "compile",
                )
                yield outcome(answer, grade_one(request, nursery), seed != SEED)
    finally:
        nursery.close()


def outcome(answer: Answer, grade: Grade, by_chance: bool = False) -> Outcome:
    """What a grade says of an answer, in short. GraderFailed if the grader itself failed on it."""
    if grade.grader_error:
        raise GraderFailed(f"{answer.path.name}: {grade.grader_error}")
    first = verdict.first_failure(grade)
    if first is None:
        return Outcome(answer, verdict.passed(grade) == len(answer.selection.exercises))
    failure = first[-1]
    likely = failure.likely if failure.mistake else ""
    diagnosis = failure.mistake or failure.kind
    return Outcome(answer, False, failure.level, diagnosis, failure.got, likely, failure.likely, by_chance)


def confused(outcomes: Iterable[Outcome]) -> list[str]:
    """Pairs of wrong answers to one exercise with one diagnosis by name, unless one lists the other as its twin."""
    found, by_name = [], {}
    for one in outcomes:
        answer = one.answer
        if answer.right or not one.likely:
            continue
        key = (answer.stem, answer.exercise, one.diagnosis, one.likely)
        for other in by_name.setdefault(key, []):
            if other.name not in answer.twins and answer.name not in other.twins:
                found.append(f"{answer.stem}: {other.name} and {answer.name} get the same message ({one.diagnosis})")
        by_name[key].append(answer)
    return found
