"""Shows a page's Markdown in a terminal through rich: maths as text, folds as bold lines, links as words.

Must never read a file and never decide what is shown: `read`, `hint` and `quiz` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from drills.study.markdown import parser
from drills.study.maths import to_text

THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.h1": "bold",
        "markdown.h2": "bold magenta",
    }
)
"""No background behind words: a terminal may be dark or light."""

WIDEST = 100
"""Columns: longer lines are hard to read."""

FORMULA = 70
"""Characters: formulas side by side that are longer go below each other."""

NAME = 30
"""Characters: a column of single words that are no longer is not broken."""

HIDDEN = ("quiz",)
"""Languages of fences that are for machines."""


def show(console: Console, source: str, *, indent: int = 0) -> None:
    """Prints Markdown to the console, `indent` columns in from the left, without blanks at the ends of lines."""
    rendered = _Page("", hyperlinks=True)
    rendered.parsed = list(_for_terminal(parser().parse(source)))
    options = console.options.update(width=min(console.width, WIDEST) - indent)
    margin, end = Segment(" " * indent), Segment.line()
    with console.use_theme(THEME):
        lines = _without_outer_blanks(console.render_lines(rendered, options, pad=False))
    segments = [part for line in lines for part in ((margin, *line, end) if line else (end,))]
    console.print(Segments(segments), end="", soft_wrap=True)


def _without_outer_blanks(lines: list[list[Segment]]) -> list[list[Segment]]:
    """Lines with the blanks at their ends cut off, and no empty line first, last or after another."""
    found: list[list[Segment]] = []
    for line in lines:
        while line and not line[-1].text.strip():
            line = line[:-1]
        if line:
            line = [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style, line[-1].control)]
        if line or (found and found[-1]):
            found.append(line)
    return found[:-1] if found and not found[-1] else found


class _Heading(Heading):
    """Headings that are told apart without color: the title and the sections are underlined."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        yield text
        line = {"h1": "═", "h2": "─"}.get(self.tag)
        if line:
            yield Text(line * min(text.cell_len, options.max_width), style=self.style_name)


class _Code(CodeBlock):
    """Code set in by two columns, comments dim. Not highlighted further: that would take longer than all the rest."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code, dim = Style(color="cyan"), Style(dim=True)
        room = options.max_width - 2
        for line in str(self.text).rstrip().split("\n"):
            at = line.find("# ") if self.lexer_name == "python" else -1
            at = len(line) if at < 0 else at
            for begin in range(0, max(len(line), 1), room):
                cut, end = max(begin, min(at, begin + room)), begin + room
                yield from (Segment("  " + line[begin:cut], code), Segment(line[cut:end], dim), Segment.line())


class _Table(TableElement):
    """Tables whose names stay whole where there is room, and whose cells break rather than lose their ends."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.body.rows if self.body is not None else []
        cells = [[cell.content.plain for cell in row.cells] for row in rows]
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for number, column in enumerate(part.columns):
                    words = [row[number] for row in cells if number < len(row)]
                    column.overflow = "fold"
                    column.no_wrap = max(map(len, words), default=0) <= NAME and not any(" " in word for word in words)
            yield part


class _Page(Markdown):
    """rich's Markdown with these elements."""

    elements = {**Markdown.elements, "heading_open": _Heading, "fence": _Code, "table_open": _Table}


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
        elif token.type == "fence" and token.info.strip() == "mermaid":
            token.content = "(a diagram, drawn on GitHub)\n" + token.content.replace("<br/>", " · ")
            yield token
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
    text = to_text(latex)
    if max(map(len, text.split("\n"))) > FORMULA:
        text = text.replace("    ", "\n")
    code.content, code.info = text + "\n", "text"
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
