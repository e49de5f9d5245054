"""Bytes moved against the least that must be moved, from the recorder's notes. Never looks at values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from drills.instruments.notes import Launch
from drills.judge import words
from drills.judge.signature import parameters
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure

READ_AGAIN = 1.05
"""A tensor whose bytes were moved more than this many times is named."""


@dataclass
class Moved:
    """Bytes of one tensor, over all launches of a call."""

    loaded: int = 0
    distinct_loaded: int = 0
    stored: int = 0
    distinct_stored: int = 0


def moved(launches: Sequence[Launch]) -> dict[str, Moved]:
    """Tensor (argument, "result 0", "workspace 0") → bytes. Distinct bytes are the most of any one launch."""
    total: dict[str, Moved] = defaultdict(Moved)
    for launch in launches:
        for parameter, traffic in launch.traffic.items():
            one = total[launch.tensors.get(parameter, parameter)]
            one.loaded += traffic.loaded
            one.stored += traffic.stored
            one.distinct_loaded = max(one.distinct_loaded, traffic.distinct_loaded)
            one.distinct_stored = max(one.distinct_stored, traffic.distinct_stored)
    return dict(total)


def multiple(exercise: Exercise, args: Args, launches: Sequence[Launch]) -> float | None:
    """Bytes moved as a multiple of the exercise's floor; None where there is no floor, or it is 0."""
    floor = exercise.floor(*args) if exercise.floor is not None else 0
    if not floor:
        return None
    return sum(_counted(exercise, moved(launches))) / floor


def _counted(exercise: Exercise, tensors: dict[str, Moved]) -> list[int]:
    """The bytes that count against the floor: loads of the parameters in `exercise.counted`, or everything."""
    if exercise.counted:
        return [one.loaded for name, one in tensors.items() if name in exercise.counted]
    return [one.loaded + one.stored for one in tensors.values()]


def traffic(exercise: Exercise, args: Args, launches: Sequence[Launch], level: str = "traffic") -> Failure | None:
    """None if the call moved at most `exercise.limit` times its floor."""
    times = multiple(exercise, args, launches)
    if times is None or times <= exercise.limit:
        return None
    floor = exercise.floor(*args)
    most, sentence = _most_repeated(exercise, launches)
    return Failure(
        kind="traffic",
        level="traffic",
        called=words.called(exercise, args),
        got=f"{round(times * floor)} bytes {_what(exercise)}, {times:.2f} times the least possible{sentence}",
        expected=f"at most {exercise.limit:.2f} times {floor} bytes",
        likely=_advice(most),
    )


def read_too_little(exercise: Exercise, args: Args, launches: Sequence[Launch], level: str) -> Failure | None:
    """None if the kernels loaded at least what the results depend on."""
    if exercise.must_read is None:
        return None
    least = exercise.must_read(*args)
    loaded = sum(one.loaded for one in moved(launches).values())
    if loaded >= least:
        return None
    return Failure(
        kind="read_too_little",
        level=level,
        called=words.called(exercise, args),
        got=f"the kernels loaded {loaded} bytes",
        expected=f"at least {least} bytes: the results depend on that much of the input",
        likely="The result must come from a Triton kernel that reads the input, not from torch in the wrapper.",
    )


def _most_repeated(exercise: Exercise, launches: Sequence[Launch]) -> tuple[str, str]:
    """What is moved most often, and a sentence with the figures of every tensor that is moved more than once."""
    texts, most, name_of_most = [], READ_AGAIN, ""
    for name, one in moved(launches).items():
        shown = _shown(exercise, name)
        for verb, total, distinct in (
            ("read", one.loaded, one.distinct_loaded),
            ("written", one.stored, one.distinct_stored),
        ):
            times = total / distinct if distinct else 0.0
            if times > READ_AGAIN:
                texts.append(f"{shown} is {verb} {times:.1f} times")
            if times > most:
                most, name_of_most = times, f"{verb} {shown}"
        if name.startswith("workspace"):
            texts.append(f"a {name} costs {one.loaded + one.stored} bytes")
            name_of_most = name_of_most or "workspace"
    return name_of_most, f": {', '.join(texts)}" if texts else ""


def _what(exercise: Exercise) -> str:
    return f"of {words.listed(exercise.counted)} read" if exercise.counted else "moved"


def _shown(exercise: Exercise, name: str) -> str:
    """ "result 0" as the result's own name; an argument as it is."""
    if name.startswith("result "):
        index = int(name.split()[1])
        returned = [output for output in exercise.outputs if output.inplace is None]
        return f"the result {returned[index].name}" if index < len(returned) else name
    return name if name in parameters(exercise) else f"the {name}"


def _advice(most: str) -> str:
    if most.startswith("read"):
        return f"Load {most.removeprefix('read ')} once and keep it in registers: a running sum needs no second pass."
    if most.startswith("written"):
        return f"Store {most.removeprefix('written ')} once, when it is final."
    if most == "workspace":
        return "Do it in one launch: what one kernel writes and the next reads is moved twice."
    return "Mask off the lanes that belong to no element."
