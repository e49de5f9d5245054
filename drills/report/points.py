"""Points: what each level of each exercise is worth, and what a grade earns. One table, and one set of rules.

The rules, for one exercise:
- A level pays its points if it passed; failed and undecided ("blocked") levels pay nothing.
- If `value` failed or is undecided, no level pays: right memory accesses to wrong numbers are worth nothing.
- If a result was not computed by Triton kernels (`not_triton`, `read_too_little`, `told_values`), no level pays either.
- A level that has no test or that this run could not judge ("none", "off") is nobody's fault: its points are shared
  among the judged levels in proportion to theirs. An exercise is therefore worth the same for everyone.
- Not started, missing, or a file that cannot be graded: 0.

Counts in hundredths of a point, so that sums are exact. `points_file` reads an instructor's own table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drills.report.model import LEVELS, ExerciseResult, Grade

DEFAULT = {"value": 400, "edge": 200, "memory": 200, "traffic": 100, "compile": 100}
"""Level → hundredths of a point, for every exercise that nothing else is said of."""

NOT_BY_KERNELS = frozenset({"not_triton", "read_too_little", "told_values"})
_JUDGED = frozenset({"passed", "failed", "blocked"})


@dataclass(frozen=True)
class Points:
    """A table of points. own: (lesson's stem, exercise) → level → hundredths, where that differs from `default`."""

    default: dict[str, int] = field(default_factory=lambda: dict(DEFAULT))
    own: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def of(self, stem: str, exercise: str) -> dict[str, int]:
        """Level → hundredths of a point for one exercise."""
        return self.own.get((stem, exercise), self.default)

    def most(self, stem: str, exercise: str) -> int:
        """Hundredths that the exercise is worth."""
        return sum(self.of(stem, exercise).values())


@dataclass(frozen=True)
class Earned:
    """What one exercise earned, in hundredths. levels: judged level → (earned, most); they add up to the whole."""

    earned: int
    most: int
    levels: dict[str, tuple[int, int]] = field(default_factory=dict)
    why_void: str = ""


def earned(points: Points, stem: str, exercise: ExerciseResult) -> Earned:
    """The exercise's points by the rules above. why_void: why no level pays though some passed; else ""."""
    most = points.most(stem, exercise.name)
    shares = _shares(points.of(stem, exercise.name), exercise)
    void = why_void(exercise) if shares else ""
    levels = {
        level: (share if exercise.levels[level].state == "passed" and not void else 0, share)
        for level, share in shares.items()
    }
    told = void if any(exercise.levels[level].state == "passed" for level in shares) else ""
    return Earned(sum(got for got, _ in levels.values()), most, levels, told)


def total(points: Points, grade: Grade) -> tuple[int, int]:
    """(earned, most) of a whole grade, in hundredths."""
    found = [earned(points, lesson.stem, exercise) for lesson in grade.lessons for exercise in lesson.exercises]
    return sum(one.earned for one in found), sum(one.most for one in found)


def shown(hundredths: int) -> str:
    """ "7.5", "10", "0.33": no zeros at the end."""
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02d}".rstrip("0") if rest else str(whole)


def why_void(exercise: ExerciseResult) -> str:
    """Why no level of it counts, whatever passed; "" if what passed counts."""
    value = exercise.levels.get("value")
    if any(test.failure and test.failure.kind in NOT_BY_KERNELS for test in exercise.tests):
        return "the result does not come from Triton kernels"
    if value and value.state in ("failed", "blocked"):
        return "the values are not right"
    return ""


def _shares(table: dict[str, int], exercise: ExerciseResult) -> dict[str, int]:
    """The exercise's hundredths over its judged levels. Rounded so that they add up exactly."""
    states = {level: result.state for level, result in exercise.levels.items()}
    judged = [level for level in LEVELS if level in table and states.get(level) in _JUDGED]
    weight, most = sum(table[level] for level in judged), sum(table.values())
    if not weight:
        return {level: 0 for level in judged}
    shares, before, reached = {}, 0, 0
    for level in judged:
        reached += table[level]
        after = (2 * most * reached + weight) // (2 * weight)
        shares[level], before = after - before, after
    return shares
