"""LaTeX to HTML by KaTeX while the book is built, so that a page shows its maths without a script.

Must never leave a formula out: one that KaTeX does not understand is an error.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from markdown_it.token import Token

from drills.book import packages
from drills.errors import GraderFailed

Formula = tuple[str, bool]
"""LaTeX, and whether it stands on lines of its own."""


def of(token: Token) -> Formula | None:
    """The formula that a token is; None if it is none."""
    if token.type == "fence" and token.info.strip() == "math":
        return token.content.strip(), True
    if token.type in ("math_inline", "math_display"):
        return token.content.strip(), token.type == "math_display"
    return None


def within(tokens: Iterable[Token]) -> set[Formula]:
    """Every formula of a page's tokens."""
    found = set()
    for token in tokens:
        for one in (token, *(token.children or ())):
            formula = of(one)
            if formula:
                found.add(formula)
    return found


def rendered(formulas: set[Formula], modules: Path) -> dict[Formula, str]:
    """The HTML of each formula, marked to stay out of the search index.

    GraderFailed, naming the formula, if KaTeX does not understand one.
    """
    ordered = sorted(formulas)
    command = [packages.program("node"), str(packages.HERE / "katex.js"), str(modules / "katex")]
    done = subprocess.run(command, input=json.dumps(ordered), capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise GraderFailed(f"KaTeX cannot set a formula: {' '.join(done.stderr.split())[:300]}")
    html = (one.replace('class="katex"', 'class="katex" data-search-exclude', 1) for one in json.loads(done.stdout))
    return dict(zip(ordered, html, strict=True))
