"""What `watch` knows: which lesson and exercise the learner is at, and the newest verdict on each exercise.

Pure: must never read a file, draw or grade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from drills.catalog import Selection
from drills.report.model import ExerciseResult, Failure, Grade, LevelResult
from drills.study import place
from drills.study.watch_files import Snapshot


@dataclass
class State:
    """selections: what is watched. passed: names ("l4.merge_state") whose code, as it is now, has passed.

    results: (stem, exercise) → its newest verdict. undecided: the exercise of which the compile level is still out.
    outdated: the (stem, exercise) whose verdict is of the text before, kept so that a quick new one replaces it.
    facts: device, isolation and instruments, as the newest grade has them. trouble: one line that the learner must see.
    """

    selections: Sequence[Selection]
    files: dict[str, Snapshot]
    passed: set[str]
    stem: str = ""
    exercise: str = ""
    results: dict[tuple[str, str], ExerciseResult] = field(default_factory=dict)
    problems: dict[str, Failure | None] = field(default_factory=dict)
    undecided: str = ""
    outdated: tuple[str, str] | None = None
    facts: Grade | None = None
    trouble: str = ""

    def __post_init__(self) -> None:
        if not self.stem:
            here = self.selections[place.where([self._standing(one) for one in self.selections])]
            self.stem = here.lesson.stem
            self.exercise = self._first(self.stem, here.exercises)

    @property
    def selection(self) -> Selection:
        """The lesson that the learner is at."""
        return next(one for one in self.selections if one.lesson.stem == self.stem)

    @property
    def file(self) -> Snapshot:
        """Its file."""
        return self.files[self.stem]

    @property
    def stuck_at(self) -> tuple[str, str]:
        """(stem, exercise) that a hint is wanted for: the learner's, or the next one if that has passed."""
        there = replace(self)
        if self._is_passed(self.stem, self.exercise):
            there.go_on()
        return there.stem, there.exercise

    @property
    def begun(self) -> bool:
        """Whether there is anything of the lesson to grade."""
        return not self.file.source.problem and any(name in self.file.begun for name in self.selection.exercises)

    def state_of(self, name: str, stem: str = "") -> str:
        """ "passed", "failed", "not started", "missing", or "" for an exercise that is begun and not yet graded."""
        stem = stem or self.stem
        function = next((one for one in self.files[stem].source.functions if one.name == name), None)
        if function is not None and function.state != "written":
            return "missing" if function.state == "missing" else "not started"
        result = self.results.get((stem, name))
        return result.state if result else ""

    def saved(self, stem: str, new: Snapshot) -> None:
        """A file has another text: turn to it, and to the exercise whose own code is another. Old verdicts on it go."""
        old, self.files[stem] = self.files[stem], new
        names = next(one for one in self.selections if one.lesson.stem == stem).exercises
        changed = [name for name in names if old.codes.get(name) != new.codes.get(name)]
        self.problems[stem], self.trouble, self.undecided = None, "", ""
        if new.source.problem:
            self.stem = stem
            return
        candidates = [name for name in changed if name in new.begun]
        if len(candidates) == len(names) > 1 and (stem != self.stem or self.exercise in candidates):
            candidates = []  # a file that came back, or another text altogether: no exercise stands out
        if candidates:
            self.exercise = candidates[0]
        elif stem != self.stem or self.exercise not in names:
            self.exercise = self._first(stem, names)
        self.stem = stem
        for name in changed:
            self.passed.discard(f"{stem.split('_', 1)[0]}.{name}")
            if name != self.exercise or name not in new.begun:
                self.results.pop((stem, name), None)
            else:
                self.outdated = stem, name

    def drop_outdated(self) -> None:
        """Forget a verdict of the text before: the new one does not come at once."""
        if self.outdated:
            self.results.pop(self.outdated, None)
            self.outdated = None

    def graded(self, grade: Grade, whole: bool) -> None:
        """Take in a verdict: of one exercise without its compile level, or whole."""
        self.facts, self.undecided, self.outdated = grade, "", None
        for lesson in grade.lessons:
            self.problems[lesson.stem] = lesson.problem
            for exercise in lesson.exercises:
                self.results[lesson.stem, exercise.name] = exercise
                if exercise.state == "passed" and whole:
                    self.passed.add(f"{lesson.stem.split('_', 1)[0]}.{exercise.name}")
                elif not whole and "compile" in exercise.levels:
                    exercise.levels["compile"] = LevelResult("blocked")
                    self.undecided = exercise.name if exercise.state == "passed" else ""
        if whole and self.state_of(self.exercise) == "not started":
            self.exercise = self._first(self.stem, self.selection.exercises)

    def go_on(self) -> bool:
        """Turn to the next exercise that has not passed, round to the first; False if there is none but this."""
        every = self._all()
        at = every.index((self.stem, self.exercise))
        after = [*every[at + 1 :], *every[:at]]
        here = next((one for one in after if not self._is_passed(*one)), None)
        if here is None:
            return False
        self.stem, self.exercise = here
        return True

    def _first(self, stem: str, names: Sequence[str]) -> str:
        """The first exercise of a lesson that is begun and fails; else not yet passed; else the first."""
        failing = [name for name in names if self.state_of(name, stem) in ("failed", "missing")]
        begun = [name for name in names if name in self.files[stem].begun and not self._is_passed(stem, name)]
        waiting = [name for name in names if not self._is_passed(stem, name)]
        return [*failing, *begun, *waiting, names[0]][0]

    def _all(self) -> list[tuple[str, str]]:
        return [(one.lesson.stem, name) for one in self.selections for name in one.exercises]

    def _is_passed(self, stem: str, name: str) -> bool:
        """By the newest verdict if there is one, else by what is kept from before."""
        known = self.state_of(name, stem)
        return known == "passed" if known in ("passed", "failed") else f"{stem.split('_', 1)[0]}.{name}" in self.passed

    def _standing(self, selection: Selection) -> place.Standing:
        stem, file = selection.lesson.stem, self.files[selection.lesson.stem]
        whole = all(self._is_passed(stem, name) for name in selection.exercises)
        return place.Standing(place.begun(file.source), whole, file.saved)
