"""Makes text by strangers fit for Markdown: it is shown as it was written, and is never markup, HTML or a link.

Must never be given a text that is meant as Markdown.
"""

from __future__ import annotations

import re

from drills.report import words

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$]|:(?=//))")
_LINKS = re.compile(r"\b(www)\.", re.IGNORECASE)
_RUNS = re.compile(r"`+")


def text(value: object, limit: int = words.LONGEST) -> str:
    """One line of prose, every character that Markdown or HTML reads as markup escaped.

    A text with "@" becomes code: some sites make a mention of it even where it is escaped.
    """
    line = words.clean(value, limit)
    if "@" in line:
        return code(line, limit)
    return _LINKS.sub(r"\1\\.", _SPECIAL.sub(r"\\\1", line))


def code(value: object, limit: int = words.LONGEST) -> str:
    """One line as a code span, in which nothing is markup; a bar is written so that a table keeps its columns."""
    line = words.clean(value, limit).replace("|", "¦")
    if not line:
        return ""
    fence = "`" * (1 + max((len(run) for run in _RUNS.findall(line)), default=0))
    blank = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def block(value: object, indent: str = "", language: str = "") -> list[str]:
    """Some lines as a fenced block, with a fence that the text cannot close; none for an empty text."""
    cleaned = words.clean_lines(value).strip("\n")
    if not cleaned.strip():
        return []
    fence = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(cleaned)), default=0))
    return [f"{indent}{fence}{language}", *(f"{indent}{line}".rstrip() for line in cleaned.split("\n")), indent + fence]
