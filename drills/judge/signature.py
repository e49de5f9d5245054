"""Reads the names and axes out of an exercise's signature, as LESSONS.md writes it.

"merge_state(v_a[S, H, D], s_a[S, H], v_b, s_b) -> (v[S, H, D], s[S, H])" has the parameters v_a, s_a, v_b, s_b and the
results v with the axes S, H, D and s with the axes S, H. A parameter with no axes has those of the parameter that it
rhymes with (v_b of v_a). Works on text alone.
"""

from __future__ import annotations

import re

from drills.lessons.base import Exercise

_NAME_AND_AXES = re.compile(r"(\w*)\s*\[([^\]]*)\]")

AXIS_WORDS = {
    "S": "position",
    "M": "row",
    "H": "head",
    "Hq": "head",
    "Hkv": "head",
    "D": "column",
    "N": "part",
    "B": "request",
    "L": "key",
    "P": "key",
    "T": "position",
}


def parameters(exercise: Exercise) -> list[str]:
    """The parameters' names, in order."""
    inside = _left(exercise)
    inside = inside[inside.index("(") + 1 : inside.rindex(")")]
    names = []
    for part in _split(inside):
        name = re.match(r"\*?(\w+)", part.strip())
        if name:
            names.append(name.group(1))
    return names


def axes_of_parameter(exercise: Exercise, name: str) -> list[str]:
    """The axes of a parameter; [] where the signature states none."""
    stated = {name: _axes(axes) for name, axes in _NAME_AND_AXES.findall(_left(exercise))}
    if name in stated:
        return stated[name]
    stem = name.split("_")[0]
    return next((axes for other, axes in stated.items() if other.split("_")[0] == stem), [])


def axes_of_result(exercise: Exercise, index: int) -> list[str]:
    """The axes of result `index`; [] where the signature states none."""
    output = exercise.outputs[index]
    if output.inplace is not None:
        return axes_of_parameter(exercise, parameters(exercise)[output.inplace])
    _, _, right = exercise.signature.partition("->")
    found = _NAME_AND_AXES.findall(right)
    for name, axes in found:
        if name == output.name:
            return _axes(axes)
    return _axes(found[index][1]) if index < len(found) else []


def axis_word(axis: str, count: int = 1) -> str:
    """The word for an axis: "head" for H, "heads" where count is not 1, "index" for an axis with no word."""
    word = AXIS_WORDS.get(axis, "index")
    if count == 1:
        return word
    return "indices" if word == "index" else word + "s"


def _left(exercise: Exercise) -> str:
    return exercise.signature.partition("->")[0]


def _axes(text: str) -> list[str]:
    return [axis.strip() for axis in text.split(",") if axis.strip()]


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += letter in "[(" and 1 or letter in "])" and -1 or 0
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [*parts, current] if current.strip() else parts
