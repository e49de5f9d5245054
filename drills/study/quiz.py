"""`grade.py quiz`: a page's self-check, one question at a time, with the explanation after each answer.

Works in a terminal and with answers from a pipe, one a line. Must never import torch, and never runs a page's code.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from rich.console import Console

from drills import catalog
from drills.catalog import Entry
from drills.errors import PASSED, Stopped, WrongUse
from drills.report import words
from drills.study import open_page, progress
from drills.study.answers import Verdict, expected, judge
from drills.study.page import Page
from drills.study.prose import say
from drills.study.question import Question
from drills.study.render import one_line, show

HOW = {
    "number": "a number",
    "choice": "a letter",
    "output": "what it prints",
}


class Stop(Exception):
    """The learner has had enough, or the input has ended."""


@dataclass
class Score:
    """of: questions there are. put: those put so far. unread: answers of which nothing could be made."""

    of: int
    put: int = 0
    right: int = 0
    unread: int = 0

    def count(self, verdict: Verdict) -> None:
        """Take in the verdict on one answer."""
        self.put += 1
        self.right += verdict.right is True
        self.unread += verdict.right is None


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = (
        "Answers may come from a pipe, one a line. There, one that cannot be read is not counted, "
        "and no score is kept; on a terminal it is asked for again."
    )
    parser.add_argument("lesson", metavar="LESSON", help="l4")
    parser.add_argument("--list", action="store_true", help="only list the questions")


def run(options: argparse.Namespace, console: Console) -> int:
    """Asks every question of the lesson's page, and keeps the score."""
    lesson = catalog.find_lesson(options.lesson)
    page = open_page.load(lesson)
    if not page.questions:
        raise WrongUse(f"content/{lesson.page.name} has no questions")
    if options.list:
        _list(console, lesson, page)
        return PASSED
    typed = sys.stdin.isatty()
    if typed:
        say(console, "Enter alone skips a question, q ends the quiz.", "dim")
        console.print()
    score = Score(len(page.questions))
    try:
        for question in page.questions:
            score.count(_ask(console, lesson, page, question, typed))
    except Stop:
        console.print()
    except KeyboardInterrupt:
        console.print()
        _end(console, lesson, score)
        raise Stopped from None
    _end(console, lesson, score)
    return PASSED


def _list(console: Console, lesson: Entry, page: Page) -> None:
    for question in page.questions:
        console.print(f" {question.number:2}  {question.kind:<7} {one_line(question.text, 66)}")
    score = progress.load().quiz.get(lesson.short)
    if score:
        console.print(f"\n Last time: {score['right']} of {score['of']}.")


def _ask(console: Console, lesson: Entry, page: Page, question: Question, typed: bool) -> Verdict:
    """Puts one question and says how the answer was."""
    console.print(f" {lesson.short} · question {question.number} of {len(page.questions)}", style="bold")
    show(console, question.text, indent=1)
    if question.kind != "number":
        console.print()
    verdict, given = _answer(console, question, typed)
    if verdict.right:
        say(console, "Right.", "green")
    elif verdict.right is None:
        say(console, f"This cannot be read, and is not counted. {_sentence(verdict.says)}", "yellow")
        say(console, f"The answer is {expected(question)}.", "yellow")
    else:
        first = f"Not quite. {_sentence(verdict.says)}".strip() if given else "Skipped."
        say(console, f"{first} The answer is {expected(question)}.", "yellow")
    show(console, question.explanation, indent=1)
    say(console, f"(content/{page.path.name}#self-check)", "dim")
    console.print()
    return verdict


def _sentence(text: str) -> str:
    return text if not text or text[-1] in ".?!" else f"{text}."


def _answer(console: Console, question: Question, typed: bool) -> tuple[Verdict, str]:
    """Reads an answer. In a terminal one that cannot be read is asked for again; from a pipe it is not counted."""
    while True:
        given = _line(console, question, typed)
        if given.casefold() in ("q", "quit"):
            raise Stop
        if not given:
            return Verdict(False), given
        verdict = judge(question, given)
        if verdict.right is not None:
            return verdict, given
        if not typed:
            return verdict, given
        say(console, verdict.says, "yellow")


def _line(console: Console, question: Question, typed: bool) -> str:
    """One line of input; what came from a pipe is echoed, so that the transcript reads like a dialog."""
    console.print(f" {HOW[question.kind]} > ", end="")
    line = sys.stdin.readline()
    if not line:
        raise Stop
    if not typed:
        console.print(line.strip())
    return line.strip()


def _end(console: Console, lesson: Entry, score: Score) -> None:
    """The score. It is kept when every question was put and every answer could be read."""
    if score.put < score.of:
        say(console, f"Stopped after {score.put} of {score.of} questions, {score.right} right. Nothing is kept.")
        return
    if score.unread:
        read = score.of - score.unread
        could = f"{words.plural(score.unread, 'answer')} could not be read. Nothing is kept."
        say(console, f"{lesson.short}: {score.right} of {read} right; {could}", "bold")
        return
    say(console, f"{lesson.short}: {score.right} of {score.of} right.", "bold")
    trouble = progress.record_quiz(lesson.short, score.right, score.of)
    if trouble:
        say(console, trouble)
