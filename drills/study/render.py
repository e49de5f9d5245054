"""Shows a page's Markdown in a terminal through rich: maths as text, folds as headings, links as words.

Must never read a file and never decide what is shown: `read`, `hint` and `quiz` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding

from drills.study.markdown import parser
from drills.study.maths import to_text

WIDEST = 100
"""Columns: longer lines are hard to read."""

HIDDEN = ("quiz",)
"""Languages of fences that are for machines."""

CODE_THEME = "ansi_dark"
"""Colors of the terminal's own palette, so that code is legible on a dark and on a light one."""


def show(console: Console, source: str, *, indent: int = 0) -> None:
    """Prints Markdown to the console, `indent` columns in from the left."""
    rendered = Markdown("", code_theme=CODE_THEME, hyperlinks=False)
    rendered.parsed = list(_for_terminal(parser().parse(source)))
    console.print(Padding(rendered, (0, 0, 0, indent)), width=min(console.width, WIDEST))


def one_line(source: str, limit: int = 72) -> str:
    """The first paragraph's words on one line of at most `limit` characters."""
    inline = next((token for token in parser().parse(source) if token.type == "inline"), None)
    words = " ".join("".join(_words(inline.children or ())).split()) if inline is not None else ""
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _words(children: Iterable[Token]) -> Iterator[str]:
    for token in _inline(children):
        yield " " if token.type in ("softbreak", "hardbreak") else token.content


def _for_terminal(tokens: list[Token]) -> Iterator[Token]:
    """The tokens of a page as a terminal can show them."""
    for token in tokens:
        if token.type == "fence" and token.info.strip() in HIDDEN:
            continue
        if token.type == "fence" and token.info.strip() == "math":
            yield from _display(token.content)
        elif token.type == "html_block":
            yield from _fold(token.content)
        elif token.type == "inline" and _is_display(token):
            token.children = [_text("\n".join(to_text(child.content) for child in token.children or ()), "math")]
            yield token
        else:
            if token.children:
                token.children = list(_inline(token.children))
            yield token


def _is_display(token: Token) -> bool:
    return bool(token.children) and all(child.type == "math_display" for child in token.children or ())


def _inline(children: Iterable[Token]) -> Iterator[Token]:
    """Maths as text, figures as their description, links inside the page as plain words."""
    inside_page = False
    for token in children:
        if token.type.startswith("math_"):
            yield _text(to_text(token.content))
        elif token.type == "image":
            yield _text(f"[figure: {token.content}]")
        elif token.type == "link_open" and str(token.attrGet("href")).startswith("#"):
            inside_page = True
        elif token.type == "link_close" and inside_page:
            inside_page = False
        else:
            yield token


def _display(latex: str) -> Iterator[Token]:
    """A formula on lines of its own, set in."""
    code = Token("fence", "code", 0)
    code.content, code.info = to_text(latex) + "\n", "text"
    yield code


def _fold(html: str) -> Iterator[Token]:
    """The summary of a fold as a bold line; any other HTML is dropped."""
    summary = html.partition("<summary>")[2].partition("</summary>")[0].strip()
    if summary:
        inline = Token("inline", "", 0)
        inline.children = [Token("strong_open", "strong", 1), _text(summary), Token("strong_close", "strong", -1)]
        yield from (Token("paragraph_open", "p", 1), inline, Token("paragraph_close", "p", -1))


def _text(words: str, kind: str = "text") -> Token:
    token = Token("text", "", 0)
    token.content = words
    token.meta = {"was": kind}
    return token
