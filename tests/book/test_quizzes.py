"""Questions on the page are judged as `grade.py quiz` judges them, and what was right stays in this browser."""

import dataclasses
import json

import pytest

from drills import catalog
from drills.book import quiz_form
from drills.study.answers import BASES, judge
from drills.study.page import load
from drills.study.question import Question

ENTRIES = (
    "11", "11.0", " 11 ", "1.1e1", "11.009", "11.02", "11 base 2", "11 bits", "11 (base 2)", "7.6246 natural",
    "7.62 nats", "7.62", "-11", "nan", "NaN", "inf", "-inf", "\u2212∞", "+Infinity", "-1e30", "1e400", "eleven",
    "11 apples", "", " ", "1 1", "11 %", "0.48%", "0.48 %", "1,024", "1_0", "1__0", "_1", ".5", "5.", ".", "1e", "0x10",
    "1e-3", "--1", "+ 1", "a", "B", "b)", "b).", "e", "constructor", "toString", "3 0.5", "[3, 0.50]", "3,0.5",
    "(3) 0.5", "3", "2.0 nan", "TRUE", "<b>1</b>", "٣", "𝟗", "½", "1\u00a0000",
)  # fmt: skip
"""What people type, and what they should not."""


def entries(question: Question) -> list[str]:
    """The general entries, and those made from the question: its answers, near misses, other units, other letters."""
    made = [*question.wrongs, *question.options, *question.options.values(), question.answer.upper()]
    number = judge(question, question.answer).right and question.kind == "number"
    if number and question.answer.lstrip("-").replace(".", "").isdigit():
        value, step = float(question.answer), max(question.tolerance, 1e-6)
        made += [repr(value + k * step) for k in (-2, -1.01, -1, -0.5, 0.5, 1, 1.01, 2)]
        made += [f"{value:g} {unit}" for units in BASES.values() for unit in units]
        made += [f"{value / 0.6931472:.4f}", f"{value * 0.6931472:.4f}", f"{value:g} {question.unit}", f"{value:g}%"]
    return [question.answer, *made, *ENTRIES]


def questions() -> list[Question]:
    """Every question of every page, and one with an infinite answer and a base."""
    found = [question for lesson in catalog.lessons() for question in load(lesson.page).questions]
    first = next(one for one in found if one.kind == "number")
    odd = {"answer": "-inf", "tolerance": 0.0, "unit": "base 2", "wrongs": {"0": "no key is not one key"}}
    percent = {"answer": "0.48", "tolerance": 0.005, "unit": "%", "wrongs": {"48": "that is a hundred times as much"}}
    return [*found, dataclasses.replace(first, **odd), dataclasses.replace(first, **percent)]


def test_the_page_judges_every_answer_as_the_terminal_does(read):
    page = read("index.html", diagrams=False).page
    cases = [(quiz_form.data(question), entries(question)) for question in questions()]
    judged = page.evaluate("(cases) => cases.map(([q, all]) => all.map((one) => Answers.judge(q, one)))", cases)
    for question, (_, given), found in zip(questions(), cases, judged, strict=True):
        for text, verdict in zip(given, found, strict=True):
            wanted = judge(question, text)
            assert (verdict["right"], verdict["says"]) == (wanted.right, wanted.says), (question.text, text)


def form(page, number):
    return page.locator(f'form.quiz[data-number="{number}"]')


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda one: one.short)
def test_right_answers_are_accepted_and_wrong_ones_told_why(read, lesson):
    page = read(f"{lesson.stem}.html", diagrams=False).page
    asked = load(lesson.page).questions
    for question in asked:
        place = form(page, question.number)
        for given, right in [*((text, False) for text in list(question.wrongs)[:1]), (question.answer, True)]:
            if question.kind == "choice":
                place.get_by_role("radio").nth("abcdefgh".index(given)).check()
            else:
                place.get_by_role("textbox").fill(given)
            place.get_by_role("button", name="Check").click()
            says = place.get_by_role("status").text_content()
            assert says.startswith("Right." if right else "Not quite."), (question.number, given)
            assert right or f"{given}:" in says
    assert f"{len(asked)} of {len(asked)} answered right." in page.locator(".quiz-score").text_content()


def test_a_quiz_is_answered_with_the_keyboard_alone(read):
    page = read("l1_online_softmax.html", diagrams=False).page
    form(page, 1).get_by_role("textbox").focus()
    page.keyboard.type("1.368")
    page.keyboard.press("Enter")
    assert form(page, 1).get_by_role("status").text_content() == "Right."
    form(page, 6).get_by_role("radio").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert form(page, 6).get_by_role("status").text_content() == "Right."


def test_what_cannot_be_read_is_asked_for_again_and_counts_as_nothing(read):
    page = read("l1_online_softmax.html", diagrams=False).page
    form(page, 1).get_by_role("button", name="Check").click()
    assert "Type a number" in form(page, 1).get_by_role("status").text_content()
    form(page, 6).get_by_role("button", name="Check").click()
    assert "Choose one" in form(page, 6).get_by_role("status").text_content()
    assert "0 of 8" in page.locator(".quiz-score").text_content()


def test_progress_outlives_the_page_and_start_over_forgets_it(read):
    reader = read("l1_online_softmax.html", diagrams=False)
    page = reader.page
    form(page, 3).get_by_role("textbox").fill("2")
    form(page, 3).get_by_role("button", name="Check").click()
    reader.open("l1_online_softmax.html")
    assert "1 of 8" in page.locator(".quiz-score").text_content()
    page.get_by_role("button", name="Start over").click()
    reader.open("l1_online_softmax.html")
    assert "0 of 8" in page.locator(".quiz-score").text_content()


REFUSED = """for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, {
  configurable: true, get() { throw new DOMException('no', 'SecurityError'); },
});"""


@pytest.mark.parametrize("stored", ["not JSON", json.dumps({"a": 1}), json.dumps(["3", None, "99"]), None])
def test_a_quiz_works_where_the_browser_keeps_nothing_or_rubbish(read, stored):
    key = json.dumps("attention-state-drills:l1_online_softmax")
    script = REFUSED if stored is None else f"localStorage.setItem({key}, {json.dumps(stored)});"
    page = read("l1_online_softmax.html", script=script, diagrams=False).page
    form(page, 1).get_by_role("textbox").fill("1.368")
    form(page, 1).get_by_role("button", name="Check").click()
    assert form(page, 1).get_by_role("status").text_content() == "Right."
