"""A self-check question as a form that the page's script checks: what `grade.py quiz` asks, from the same fence.

Without a script the form stays hidden, and the question and its folded answer are read as on GitHub. The rules of
checking are `drills/study/answers.py` and, line for line, `static/answers.js`. Must never hold rules of its own.
"""

from __future__ import annotations

import html
import json

from drills.book.render import Setting, inline
from drills.study.answers import expected
from drills.study.question import Question

HOW = {"number": "Your number", "output": "What it prints"}


def data(question: Question, setting: Setting | None = None) -> dict[str, object]:
    """What the script checks an answer by. `says`: each wrong answer's reason as HTML, if a setting is given."""
    known = {
        "kind": question.kind,
        "answer": question.answer,
        "tolerance": question.tolerance,
        "unit": question.unit,
        "options": question.options,
        "wrongs": question.wrongs,
        "expected": expected(question),
    }
    if setting is not None:
        known["shown"] = {text: inline(_sentence(f"{text}: {why}"), setting) for text, why in question.wrongs.items()}
    return known


def form(question: Question, setting: Setting) -> str:
    """The form of one question."""
    known = html.escape(json.dumps(data(question, setting), ensure_ascii=False), quote=True)
    name = f"q{question.number}"
    body = _choice(question, setting, name) if question.kind == "choice" else _line(question, name)
    return (
        f'<form class="quiz" data-number="{question.number}" data-question="{known}" hidden>\n'
        f'{body}<button type="submit" class="md-button md-button--primary">Check</button></p>\n'
        f'<p class="quiz-verdict" role="status"></p>\n</form>\n'
    )


def _sentence(words: str) -> str:
    return words if words.endswith((".", "?", "!")) else f"{words}."


def _line(question: Question, name: str) -> str:
    """The field of a number or an output, on the line that the button ends."""
    label = HOW[question.kind]
    unit = f", in {question.unit}" if question.unit else ""
    field = f'<input id="{name}" name="answer" type="text" autocomplete="off" autocapitalize="off" spellcheck="false">'
    return f'<p class="quiz-row"><label for="{name}">{label}{html.escape(unit)}</label>{field} '


def _choice(question: Question, setting: Setting, name: str) -> str:
    """The options, and the beginning of the line that the button ends."""
    options = "\n".join(
        f'<label class="quiz-option"><input type="radio" name="answer" value="{letter}">'
        f"<span>{letter}) {inline(text, setting)}</span></label>"
        for letter, text in question.options.items()
    )
    legend = f"<legend>Your choice, question {question.number}</legend>"
    return f'<fieldset class="quiz-options">{legend}{options}</fieldset>\n<p class="quiz-row">'
