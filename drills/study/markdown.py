"""Markdown as this project's pages use it: blocks with their lines, GitHub's anchors, links, maths as tokens.

Built on markdown-it-py, so that code, HTML and maths are told apart as GitHub does. Must never interpret what a block
means to a lesson (`page.py` does that) and must never import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_MATH = (("$$", "$$"), ("$`", "`$"), ("$", "$"))


@dataclass(frozen=True)
class Block:
    """One top-level block of a page.

    kind: "heading", "fence", "html", "list" or "text" (anything else).
    line, end: its first line and the line after its last, counted from 1.
    text: a heading's words without markup, a fence's content, else the block as it stands in the file.
    info: a fence's language. level: a heading's level, else 0. slug: a heading's anchor on GitHub.
    items: the words of a list's items, markup kept.
    """

    kind: str
    line: int
    end: int
    text: str
    info: str = ""
    level: int = 0
    slug: str = ""
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """A link or an image: where it points, and the line of its paragraph."""

    target: str
    line: int


def parser() -> MarkdownIt:
    """CommonMark with tables, and with maths as tokens: "math_inline" for `$…$`, "math_display" for `$$…$$`."""
    markdown = MarkdownIt("commonmark").enable("table").enable("strikethrough")
    markdown.inline.ruler.before("escape", "math", _math)
    return markdown


def _math(state: StateInline, silent: bool) -> bool:
    """The inline rule for maths. As on GitHub, `$` touches the formula; `` $`…`$ `` is another form of it."""
    source, start = state.src, state.pos
    if source[start] != "$":
        return False
    opening, closing = next(pair for pair in _MATH if source.startswith(pair[0], start))
    begin = start + len(opening)
    end = source.find(closing, begin)
    if end <= begin:
        return False
    body = source[begin:end]
    if opening == "$" and (body != body.strip() or "`" in body or source[end + 1 : end + 2].isdigit()):
        return False
    if not silent:
        token = state.push("math_display" if opening == "$$" else "math_inline", "math", 0)
        token.content = body.strip()
    state.pos = end + len(closing)
    return True


def blocks(source: str) -> list[Block]:
    """The top-level blocks of a page, in order."""
    lines = source.split("\n")
    tokens = parser().parse(source)
    used: dict[str, int] = {}
    found = []
    for i, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        line, end = token.map[0] + 1, token.map[1] + 1
        if token.type == "heading_open":
            words = plain(tokens[i + 1])
            found.append(Block("heading", line, end, words, level=int(token.tag[1]), slug=_unique(slug(words), used)))
        elif token.type == "fence":
            found.append(Block("fence", line, end, token.content, info=token.info.strip()))
        else:
            text = "\n".join(lines[line - 1 : end - 1]).strip("\n")
            if token.type == "html_block":
                found.append(Block("html", line, end, text))
            elif token.type.endswith("_list_open"):
                found.append(Block("list", line, end, text, items=tuple(_items(tokens, i))))
            else:
                found.append(Block("text", line, end, text))
    return found


def split(body: list[Block], level: int) -> list[tuple[Block, list[Block]]]:
    """A run of blocks cut at its headings of `level`; what stands before the first is left out."""
    cuts = [i for i, block in enumerate(body) if block.kind == "heading" and block.level == level]
    return [(body[i], body[i + 1 : j]) for i, j in zip(cuts, [*cuts[1:], len(body)], strict=False)]


def join(body: list[Block], source: str) -> str:
    """A run of blocks as it stands in the page."""
    return "\n".join(source.split("\n")[body[0].line - 1 : body[-1].end - 1]).strip("\n") if body else ""


def folded(body: list[Block], wrong: Callable[[int, str], None]) -> list[tuple[Block, str, list[Block]]]:
    """Each `<details>` of a run of blocks: the opening block, its summary, the blocks inside."""
    found: list[tuple[Block, str, list[Block]]] = []
    opening, inside = None, []
    for block in body:
        tags = block.text.strip() if block.kind == "html" else ""
        if tags.startswith("</details>"):
            if opening is None:
                wrong(block.line, "</details> without <details>")
            else:
                found.append((opening, _summary(opening.text), inside))
            opening, tags = None, tags.removeprefix("</details>").strip()
        elif not tags.startswith("<details"):
            inside.append(block)
        if tags.startswith("<details"):
            if opening is not None:
                wrong(block.line, f"<details> inside the <details> of line {opening.line}")
            if not tags.endswith("</summary>"):
                wrong(block.line, "<details><summary>…</summary> must stand alone, with an empty line after it")
            opening, inside = block, []
    if opening is not None:
        wrong(opening.line, "<details> is not closed (</details> must stand on a line of its own)")
    return found


def _summary(tags: str) -> str:
    """The words between <summary> and </summary>."""
    return tags.partition("<summary>")[2].partition("</summary>")[0].strip()


def fences(source: str) -> list[Block]:
    """Every fenced block of a page, nested ones included."""
    return [
        Block("fence", token.map[0] + 1, token.map[1] + 1, token.content, info=token.info.strip())
        for token in parser().parse(source)
        if token.type == "fence" and token.map
    ]


def links(source: str) -> list[Link]:
    """Every link and image of a page; those inside code and HTML are none."""
    found = []
    for token in parser().parse(source):
        for child in token.children or ():
            target = child.attrGet("href" if child.type == "link_open" else "src")
            if target is not None and token.map:
                found.append(Link(str(target), token.map[0] + 1))
    return found


def formulas(source: str) -> list[Block]:
    """Every formula of a page, inline and display, with the line of its paragraph."""
    found = []
    for token in parser().parse(source):
        if token.type == "fence" and token.info.strip() == "math" and token.map:
            found.append(Block("math", token.map[0] + 1, token.map[1] + 1, token.content))
        for child in token.children or ():
            if child.type.startswith("math_") and token.map:
                found.append(Block("math", token.map[0] + 1, token.map[1] + 1, child.content))
    return found


def prose(source: str) -> list[Block]:
    """Every paragraph, heading, item and cell of a page: its words without code and maths."""
    found = []
    for token in parser().parse(source):
        if token.type == "inline" and token.map:
            words = " ".join(child.content for child in token.children or () if child.type == "text")
            found.append(Block("text", token.map[0] + 1, token.map[1] + 1, words))
    return found


def plain(inline: Token) -> str:
    """The words of an inline token, markup removed."""
    return "".join(" " if child.type == "softbreak" else child.content for child in inline.children or ())


def slug(words: str) -> str:
    """The anchor that GitHub gives a heading: lower case, punctuation dropped, spaces as hyphens."""
    kept = (c for c in words.strip().lower() if c.isalnum() or c in "-_ ")
    return "".join(kept).replace(" ", "-")


def _unique(anchor: str, used: dict[str, int]) -> str:
    """GitHub numbers headings that repeat: `same`, `same-1`, `same-2`."""
    count = used.get(anchor, 0)
    used[anchor] = count + 1
    return f"{anchor}-{count}" if count else anchor


def _items(tokens: list[Token], opening: int) -> Iterator[str]:
    """The first paragraph of each item of the list that opens at `tokens[opening]`."""
    depth = tokens[opening].level
    for i in range(opening + 1, len(tokens)):
        token = tokens[i]
        if token.level == depth:
            return
        if token.type == "list_item_open" and token.level == depth + 1:
            inline = next((t for t in tokens[i + 1 :] if t.type in ("inline", "list_item_close")), None)
            yield inline.content if inline is not None and inline.type == "inline" else ""
