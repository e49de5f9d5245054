"""Judges an answer to a self-check question: a number in any unit of its base, a choice, a program's output.

Pure: must never print, ask or keep a score.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from drills.study.question import Question, as_number

BASES = {
    "base 2": ("base 2", "base2", "log2", "bit", "bits"),
    "natural": ("natural", "nat", "nats", "base e", "basee", "e", "ln", "nepers"),
}
"""Units of a logarithm, and what people call them."""


@dataclass(frozen=True)
class Verdict:
    """right: None if the answer could not be read. says: why it is wrong, or what form an answer has; may be empty."""

    right: bool | None
    says: str = ""


def judge(question: Question, given: str) -> Verdict:
    """Whether `given`, as someone typed it, answers the question."""
    given = " ".join(given.split())
    if question.kind == "number":
        return _number(question, given)
    if question.kind == "choice":
        return _choice(question, given)
    return _output(question, given)


def expected(question: Question) -> str:
    """The answer as it is shown: with its unit, or with the option's text."""
    if question.kind == "choice":
        return f"{question.answer}) {question.options[question.answer]}"
    if _base(question.unit):
        return f"{question.answer} ({question.unit})"
    return f"{question.answer} {question.unit}".strip()


def _number(question: Question, given: str) -> Verdict:
    value, unit = _value_and_unit(given)
    if value is None:
        return Verdict(None, "Type a number, such as 11, -2.5, 1e-3 or -inf.")
    wanted_base, given_base = _base(question.unit), _base(unit)
    if unit and wanted_base and given_base:
        value = _convert(value, given_base, wanted_base)
    elif unit and unit.casefold() != question.unit.casefold():
        return Verdict(None, f"The unit is {question.unit}." if question.unit else "Type the number without a unit.")
    answer = as_number(question.answer)
    if close(value, answer, question.tolerance):
        return Verdict(True)
    for text, why in question.wrongs.items():
        if close(value, as_number(text), max(question.tolerance, _last_digit(text))):
            return Verdict(False, f"{text}: {why}")
    if wanted_base and answer is not None:
        other = "natural" if wanted_base == "base 2" else "base 2"
        if answer and close(value, _convert(answer, wanted_base, other), max(question.tolerance, 5e-3)):
            return Verdict(False, f"That is the answer in the other unit, {other}; asked is {wanted_base}.")
    return Verdict(False)


def _choice(question: Question, given: str) -> Verdict:
    letter = given.casefold().rstrip(").")
    by_text = [key for key, text in question.options.items() if text.casefold() == given.casefold()]
    letter = by_text[0] if by_text else letter
    if letter not in question.options:
        return Verdict(None, f"Type one of {', '.join(question.options)}.")
    if letter == question.answer:
        return Verdict(True)
    why = question.wrongs.get(letter, "")
    return Verdict(False, f"{letter}: {why}" if why else "")


def _output(question: Question, given: str) -> Verdict:
    if not given:
        return Verdict(None, "Type what the program prints; several lines go on one, with spaces between.")
    if _same_output(given, question.answer):
        return Verdict(True)
    for text, why in question.wrongs.items():
        if _same_output(given, text):
            return Verdict(False, f"{text}: {why}")
    return Verdict(False)


def _value_and_unit(text: str) -> tuple[float | None, str]:
    """ "3.44 natural" → 3.44 and "natural"; "12%" → 12 and "%"; "50.3MB" → 50.3 and "MB"."""
    words = re.sub(r"(?<=\d)(%|[KMGT]i?B\b)", r" \1", text).split()
    value = as_number(words[0]) if words else None
    return value, " ".join(words[1:]).strip("()")


def _base(unit: str) -> str:
    return next((base for base, names in BASES.items() if unit.casefold() in names), "")


def _convert(value: float, given: str, wanted: str) -> float:
    """A log-sum-exp from one base to another: ln x = log2 x · ln 2."""
    if given == wanted:
        return value
    return value * math.log(2) if wanted == "natural" else value / math.log(2)


def close(value: float, answer: float | None, tolerance: float) -> bool:
    """Within the tolerance and the rounding of decimal fractions; infinities of one sign and NaNs are equal."""
    if answer is None:
        return False
    if not (math.isfinite(value) and math.isfinite(answer)):
        return value == answer or (math.isnan(value) and math.isnan(answer))
    return abs(value - answer) <= tolerance + 1e-9 * abs(answer)


def _last_digit(text: str) -> float:
    """Half a unit of the last decimal that is written; 0 for an integer."""
    decimals = text.partition(".")[2]
    return 0.5 * 10 ** -len(decimals) if decimals.isdigit() else 0.0


def _same_output(given: str, wanted: str) -> bool:
    """Word for word, or number for number: `[1., 2.]` and `1.0 2.0` are the same answer."""
    if given.casefold() == " ".join(wanted.split()).casefold():
        return True
    left, right = (text.translate(str.maketrans("[](),", "     ")).split() for text in (given, wanted))
    pairs = list(zip(left, right, strict=False))
    return bool(pairs) and len(left) == len(right) and all(_same_word(one, other) for one, other in pairs)


def _same_word(one: str, other: str) -> bool:
    if one.casefold() == other.casefold():
        return True
    left, right = as_number(one), as_number(other)
    return left is not None and right is not None and left == right
