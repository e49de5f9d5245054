"""Bytes moved against the least that must be moved, from the recorder's notes. Never looks at values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from drills.instruments.notes import Launch
from drills.judge import words
from drills.judge.signature import parameters
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure

READ_AGAIN = 1.05
"""A tensor whose bytes were moved more than this many times is named."""


LOAD_ONCE = "Load {} once and keep it in registers: a running sum needs no second pass."
STORE_ONCE = "Store {} once, when it is final."
ONE_PASS = "Read {} twice at most: the maximum and the sum need one pass over it together, not one each."
ONE_LAUNCH = "Do it in one launch: what one kernel writes and the next reads is moved twice."
NO_WORKSPACE = "Keep in registers what goes through a workspace: there it is moved twice."
NO_COPY = "What goes through {} is moved once more: let the kernel use the tensors themselves and their strides."
MASK = "Mask off the lanes that belong to no element."


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
    advice, sentence = _excess(exercise, launches, floor)
    return Failure(
        kind="traffic",
        level="traffic",
        called=words.called(exercise, args),
        got=f"{round(times * floor)} bytes {_what(exercise)}, {times:.2f} times the least possible{sentence}",
        expected=f"at most {exercise.limit:.2f} times {floor} bytes",
        likely=advice,
    )


def read_too_little(exercise: Exercise, args: Args, launches: Sequence[Launch], level: str) -> Failure | None:
    """None if the kernels loaded at least what the results depend on.

    An input that repeats itself in memory (stride 0) can be read with fewer bytes than it has: nothing is asked then.
    """
    if exercise.must_read is None or any(_repeats(one) for one in args):
        return None
    least = exercise.must_read(*args)
    # What was filled elsewhere is no input: an answer that is already there can be read as often as one likes.
    loaded = sum(one.loaded - one.elsewhere for launch in launches for one in launch.traffic.values())
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


def _repeats(value: Any) -> bool:
    """Is it a tensor of which several elements share an address?"""
    return isinstance(value, torch.Tensor) and any(
        size > 1 and stride == 0 for size, stride in zip(value.shape, value.stride(), strict=True)
    )


def _excess(exercise: Exercise, launches: Sequence[Launch], floor: int) -> tuple[str, str]:
    """What costs most beyond once, as advice, and a sentence with the figures of all that is moved more than once."""
    texts: list[str] = []
    costs: dict[str, int] = {"": 0}
    workspaces = copied_in = 0
    kernels = [launch for launch in launches if launch.grid]
    copies = [launch for launch in launches if not launch.grid]
    copied_to = {name for name, one in moved(copies).items() if one.stored}
    for name, one in moved(kernels).items():
        if name.startswith("workspace"):
            workspaces += one.loaded + one.stored
            copied_in += one.loaded if name in copied_to else 0
            continue
        shown, result = _shown(exercise, name), name.startswith("result ")
        for verb, advice, total, distinct in (
            ("read", _load(exercise, one, floor), one.loaded, one.distinct_loaded),
            ("written", STORE_ONCE, one.stored, one.distinct_stored),
        ):
            if distinct and total > READ_AGAIN * distinct and not (result and verb == "read"):
                texts.append(f"{shown} is {verb} {total / distinct:.1f} times")
                costs[advice.format(shown)] = total - distinct
        if result and one.loaded:  # what is final is not read again
            texts.append(f"{shown} is read back")
            costs[STORE_ONCE.format(shown)] = one.loaded + one.stored - one.distinct_stored
    if workspaces:
        texts.append(f"{workspaces} bytes go into and out of a workspace")
        costs[NO_WORKSPACE if len(kernels) == 1 else ONE_LAUNCH] = workspaces - copied_in
    copied = sum(one.loaded + one.stored for one in moved(copies).values())
    if copied:
        names = words.listed(list(dict.fromkeys(launch.kernel for launch in copies)))
        texts.append(f"{copied} bytes go through {names}")
        costs[NO_COPY.format(names)] = copied + copied_in
    return max(costs, key=costs.get) or MASK, f": {', '.join(texts)}" if texts else ""


def _load(exercise: Exercise, one: Moved, floor: int) -> str:
    """The advice on a tensor that is read again: the exercise's own, or, where two passes are allowed, on the third."""
    if exercise.read_again:
        return exercise.read_again
    once = one.distinct_loaded
    allowed = 1 + (exercise.limit - 1) * floor // once if once else 1
    return ONE_PASS if allowed == 2 and one.loaded > READ_AGAIN * allowed * once else LOAD_ONCE


def _what(exercise: Exercise) -> str:
    return f"of {words.listed(exercise.counted)} read" if exercise.counted else "moved"


def _shown(exercise: Exercise, name: str) -> str:
    """ "result 0" as the result's own name; an argument as it is."""
    if name.startswith("result "):
        return words.results_named(exercise, name)
    return name if name in parameters(exercise) else f"the {name}"
