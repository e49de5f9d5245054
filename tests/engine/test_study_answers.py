"""Answers to questions are judged as a teacher would: by value, in any unit of the base, and with the reason."""

from dataclasses import replace
from pathlib import Path

import pytest
import sample_page

from drills.study.answers import expected, judge

NUMBER, CHOICE, OUTPUT, PERCENT, _, INFINITE = sample_page.page(Path(".")).questions


@pytest.mark.parametrize(
    "given",
    ["11", "11.0", " 11 ", "1.1e1", "11.009", "11 base 2", "11 bits", "11 (base 2)", "7.6246 natural", "7.6246 nats"],
)
def test_right_numbers_in_any_form_are_right(given):
    assert judge(NUMBER, given).right is True


@pytest.mark.parametrize("given", ["10.69", "11.02", "12", "7.6246", "11 natural", "-11", "nan", "inf"])
def test_wrong_numbers_are_wrong(given):
    assert judge(NUMBER, given).right is False


def test_a_unit_may_follow_without_a_blank():
    assert judge(PERCENT, f"{PERCENT.answer}{PERCENT.unit}").right is True
    megabytes = replace(PERCENT, unit="MB")
    assert judge(megabytes, f"{PERCENT.answer}MB").right is judge(megabytes, f"{PERCENT.answer} mb").right is True
    assert judge(megabytes, f"{PERCENT.answer}KB").right is None


@pytest.mark.parametrize("given", ["eleven", "11 apples", "", "1 1", "11 %"])
def test_what_is_no_number_is_asked_again(given):
    verdict = judge(NUMBER, given)
    assert verdict.right is None
    assert verdict.says


def test_a_known_wrong_number_gets_its_reason():
    assert judge(NUMBER, "10.693").says == "10.69: ln 2: the natural rule"


def test_the_answer_in_the_other_base_is_named():
    assert "natural" in judge(NUMBER, "7.62").says


@pytest.mark.parametrize(
    ("given", "right"), [("0.48", True), ("0.48%", True), ("0.48 %", True), ("0.476", True), ("0.47", False)]
)
def test_other_units_are_taken_as_words(given, right):
    assert judge(PERCENT, given).right is right


@pytest.mark.parametrize(("given", "right"), [("-inf", True), ("\u2212∞", True), ("inf", False), ("-1e30", False)])
def test_infinity_is_a_number(given, right):
    assert judge(INFINITE, given).right is right


@pytest.mark.parametrize(
    ("given", "right"), [("b", True), ("B)", True), ("zero and `-inf`", True), ("a", False), ("c", None)]
)
def test_choices(given, right):
    assert judge(CHOICE, given).right is right


def test_a_wrong_choice_gets_its_reason():
    assert judge(CHOICE, "a").says == "a: that is NaN"


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("3 0.5", True),
        ("3   0.5", True),
        ("3, 0.50", True),
        ("[3, 0.5]", True),
        ("3 0.6", False),
        ("3", False),
        ("", None),
    ],
)
def test_outputs(given, right):
    assert judge(OUTPUT, given).right is right


def test_the_answer_is_shown_with_its_unit():
    assert [expected(one) for one in (NUMBER, CHOICE, OUTPUT, PERCENT)] == [
        "11 (base 2)", "b) zero and `-inf`", "3 0.5", "0.48 %",
    ]  # fmt: skip
