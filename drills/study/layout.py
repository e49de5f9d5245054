"""Lays Markdown out as lines of styled text of a given width: paragraphs, lists, tables, code, maths.

Takes markdown-it's tokens, so that the parser stays the only one. rich's own Markdown takes three times as long for a
page, which is more than a command that only shows a page may take. Must never print.
"""

from __future__ import annotations

from collections.abc import Callable

from markdown_it.token import Token
from rich.style import Style

from drills.study import diagram
from drills.study.maths import to_text
from drills.study.text import BOLD, CODE, DIM, PLAIN, Line, plain, table, trimmed, wrapped

FORMULA = 70
"""Characters: formulas side by side that are longer go below each other."""

HIDDEN = ("quiz",)
"""Languages of fences that are for machines."""

INLINE = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True), "link": Style(color="blue")}
HEADINGS = {"h1": BOLD, "h2": Style(bold=True, color="magenta"), "h3": Style(bold=True, color="magenta")}
RULES = {"h1": "═", "h2": "─"}
"""What underlines a heading, so that headings are told apart without color."""


def lines(tokens: list[Token], width: int) -> list[Line]:
    """The tokens of a page, or of a part of it, as lines of at most `width` characters, blocks an empty line apart."""
    found: list[Line] = []
    at = 0
    while at < len(tokens):
        token, end = tokens[at], _closing(tokens, at)
        block = _BLOCKS.get(token.type, _nothing)(token, tokens[at + 1 : end], width)
        if block:
            found += [[], *block] if found and not token.hidden else block
        at = end + 1
    return found


def runs(children: list[Token] | None) -> Line:
    """The text of an inline token: maths as text, figures as their description, links as their words."""
    found: Line = []
    styles = [PLAIN]
    for token in children or ():
        kind = token.type.removesuffix("_open").removesuffix("_close")
        if token.nesting == 1:
            styles.append(styles[-1] + _style(kind, token))
        elif token.nesting == -1:
            styles.pop()
        elif kind in _WORDS:
            found.append((_WORDS[kind](token), styles[-1] + CODE if kind == "code_inline" else styles[-1]))
    return found


def _style(kind: str, token: Token) -> Style:
    href = str(token.attrGet("href") or "") if kind == "link" else ""
    if kind == "link" and not href.startswith("http"):
        return PLAIN
    return INLINE.get(kind, PLAIN) + (Style(link=href) if href else PLAIN)


def _closing(tokens: list[Token], at: int) -> int:
    """Where the block that opens at `at` closes; `at` itself for one that holds no others."""
    if tokens[at].nesting != 1:
        return at
    level = tokens[at].level
    return next(i for i in range(at + 1, len(tokens)) if tokens[i].level == level and tokens[i].nesting == -1)


def _nothing(token: Token, inside: list[Token], width: int) -> list[Line]:
    return []


def _paragraph(token: Token, inside: list[Token], width: int) -> list[Line]:
    children = inside[0].children or []
    if children and all(child.type == "math_display" for child in children):
        return [line for child in children for line in _formula(child.content, width)]
    return wrapped(runs(children), width)


def _heading(token: Token, inside: list[Token], width: int) -> list[Line]:
    style = HEADINGS.get(token.tag, BOLD)
    found = wrapped([(words, style + own) for words, own in runs(inside[0].children)], width)
    if token.tag in RULES:
        found.append([(RULES[token.tag] * max(len(plain(line)) for line in found), style)])
    return found


def _fence(token: Token, inside: list[Token], width: int) -> list[Line]:
    language = token.info.strip()
    if language in HIDDEN:
        return []
    if language == "math":
        return _formula(token.content, width)
    if language == "mermaid":
        return _diagram(token.content, width)
    text = token.content.rstrip("\n")
    room = width - 2
    found: list[Line] = []
    for line in text.split("\n"):
        at = line.find("# ") if language == "python" else -1
        at = len(line) if at < 0 else at
        for begin in range(0, max(len(line), 1), room):
            cut, end = max(begin, min(at, begin + room)), begin + room
            found.append(trimmed([("  " + line[begin:cut], CODE), (line[cut:end], DIM)]))
    return found


def _diagram(source: str, width: int) -> list[Line]:
    """What a diagram says, arrow by arrow; where it is drawn."""
    found: list[Line] = [[("  (a diagram: drawn on GitHub)", DIM)]]
    for sentence in diagram.sentences(source):
        margin = " " * (2 + len(sentence) - len(sentence.lstrip()))
        pieces = wrapped([(sentence.strip(), CODE)], width - len(margin) - 2)
        found += [[(margin if i == 0 else f"{margin}  ", PLAIN), *piece] for i, piece in enumerate(pieces)]
    return found


def _formula(latex: str, width: int) -> list[Line]:
    """Formulas set in, side by side where they fit."""
    text = to_text(latex)
    if max(map(len, text.split("\n"))) > min(FORMULA, width - 2):
        text = text.replace("    ", "\n")
    return [[("  ", PLAIN), *line] for line in wrapped([(text, CODE)], width - 2)]


def _list(token: Token, inside: list[Token], width: int) -> list[Line]:
    """Items behind a bullet or their number, apart by an empty line where the page has them apart."""
    found: list[Line] = []
    at = 0
    while at < len(inside):
        end = _closing(inside, at)
        body = inside[at + 1 : end]
        mark = f"{inside[at].info}. " if token.type == "ordered_list_open" else "• "
        loose = any(one.type == "paragraph_open" and not one.hidden for one in body)
        found += [[]] if found and loose else []
        found += _hanging(lines(body, width - len(mark) - 1), f" {mark}")
        at = end + 1
    return found


def _quote(token: Token, inside: list[Token], width: int) -> list[Line]:
    return [[("▌ ", DIM), *line] for line in lines(inside, width - 2)]


def _hanging(body: list[Line], mark: str) -> list[Line]:
    """Lines behind a mark; the further ones below the first one's text."""
    margins = [mark] + [" " * len(mark)] * len(body)
    return [[(margin, PLAIN), *line] if line else line for margin, line in zip(margins, body, strict=False)]


def _fold(token: Token, inside: list[Token], width: int) -> list[Line]:
    """The summary of a fold, bold; other HTML says nothing in a terminal."""
    summary = token.content.partition("<summary>")[2].partition("</summary>")[0].strip()
    return wrapped([(summary, BOLD)], width) if summary else []


def _rule(token: Token, inside: list[Token], width: int) -> list[Line]:
    return [[("─" * width, DIM)]]


def _table(token: Token, inside: list[Token], width: int) -> list[Line]:
    rows: list[list[Line]] = []
    for one in inside:
        if one.type == "tr_open":
            rows.append([])
        elif one.type == "inline":
            rows[-1].append(runs(one.children))
    return [[("  ", PLAIN), *line] for line in table(rows, width - 2)]


_WORDS: dict[str, Callable[[Token], str]] = {
    "text": lambda token: token.content,
    "code_inline": lambda token: token.content,
    "softbreak": lambda token: " ",
    "hardbreak": lambda token: "\n",
    "math_inline": lambda token: to_text(token.content),
    "math_display": lambda token: to_text(token.content),
    "image": lambda token: f"[figure: {token.content}]",
}
_BLOCKS: dict[str, Callable[[Token, list[Token], int], list[Line]]] = {
    "paragraph_open": _paragraph,
    "heading_open": _heading,
    "fence": _fence,
    "code_block": _fence,
    "bullet_list_open": _list,
    "ordered_list_open": _list,
    "blockquote_open": _quote,
    "html_block": _fold,
    "hr": _rule,
    "table_open": _table,
}
