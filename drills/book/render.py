"""Markdown of a page to HTML, by the parser that `read` and GitHub's rules share, so that a page means one thing.

Headings become Markdown again (the site generator makes its table of contents and its search index of them); what
stands between two headings becomes HTML. Must never change what a page says.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from drills.book import formulas
from drills.study.markdown import Block, blocks, parser, plain

FIGURE = re.compile(r"<!--\s*figure:\s*(\w+)\s*-->")
"""Where a page places a figure that moves: this comment, alone. An image right below it is the figure's still."""

QUESTION = "Question "


@dataclass(frozen=True)
class Setting:
    """What a page needs from outside: its formulas' HTML, where links lead, and what stands for quizzes and figures.

    link: the target as the page has it → as the site has it, None if it leads nowhere. quiz: the line of a ```quiz
    fence → its form. figure: a figure's name and its still, or "" → its HTML.
    """

    formulas: dict[formulas.Formula, str]
    link: Callable[[str], str | None]
    quiz: Callable[[int], str]
    figure: Callable[[str, str], str]
    used: set[str] = field(default_factory=set)


def page(source: str, setting: Setting, before: dict[str, str] | None = None) -> str:
    """A page as the site generator takes it. before: Markdown to insert in front of the section of that title."""
    tokens = parser().parse(source)
    headings = iter([block for block in blocks(source) if block.kind == "heading"])
    markdown = _markdown()
    parts: list[str] = []
    run: list[Token] = []
    under = ""

    def flush() -> None:
        if run:
            env = {"setting": setting, "under": under}
            parts.append(_wrapped(markdown.renderer.render(list(run), markdown.options, env)))
            run.clear()

    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.type == "heading_open" and token.level == 0:
            block = next(headings)
            if block.text.startswith(QUESTION):
                run.extend(_question_heading(block, tokens[position : position + 3]))
            else:
                flush()
                under = block.text
                parts.append((before or {}).get(block.text, ""))
                parts.append(f"{'#' * block.level} {_heading(tokens[position + 1])} {{#{block.slug}}}")
            position += 3
            continue
        run.append(token)
        position += 1
    flush()
    return "\n\n".join(part for part in parts if part) + "\n"


def fragment(source: str, setting: Setting) -> str:
    """A piece of Markdown without headings as HTML."""
    markdown = _markdown()
    return markdown.renderer.render(parser().parse(source), markdown.options, {"setting": setting})


def inline(source: str, setting: Setting) -> str:
    """A line of Markdown as HTML, without a paragraph around it."""
    markdown = _markdown()
    tokens = parser().parseInline(source)
    return markdown.renderer.render(tokens, markdown.options, {"setting": setting}).strip()


def code(text: str, language: str, anchors: bool = False) -> str:
    """Highlighted code; with `anchors` every line can be linked to as `#L7`."""
    try:
        lexer = get_lexer_by_name("pycon" if language == "python" and ">>>" in text else language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    inner = highlight(text, lexer, HtmlFormatter(nowrap=True))
    if anchors:
        lines = inner.removesuffix("\n").split("\n")
        inner = "".join(f'<span id="L{at}" class="line">{line}\n</span>' for at, line in enumerate(lines, start=1))
    return f'<div class="highlight"><pre><code>{inner}</code></pre></div>\n'


def front_matter(**values: object) -> str:
    """A page's settings for the site generator; JSON is YAML."""
    return "---\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items() if value) + "---\n\n"


def description(source: str) -> str:
    """The first paragraph's words, for the page's description; "" if there is none."""
    tokens = parser().parse(source)
    first = next((i for i, token in enumerate(tokens) if token.type == "paragraph_open"), None)
    return "" if first is None else plain(tokens[first + 1])


def _wrapped(body: str) -> str:
    return f'<div class="part">\n{body.strip()}\n</div>'


def _heading(inline_token: Token) -> str:
    """A heading's text as Markdown that means the same to the site generator."""
    kept = []
    for child in inline_token.children or ():
        if child.type == "code_inline":
            kept.append(f"`{child.content}`")
        elif child.type == "math_inline":
            kept.append(child.content)
        elif child.content:
            kept.append(re.sub(r"([\\`*_{}\[\]<>#])", r"\\\1", child.content))
    return "".join(kept)


def _question_heading(block: Block, tokens: Sequence[Token]) -> Iterator[Token]:
    """A question's heading stays out of the table of contents: it is HTML from the start."""
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", block.slug)
        yield token


def _markdown() -> MarkdownIt:
    markdown = parser()
    for name, rule in _RULES.items():
        markdown.add_render_rule(name, rule)
    return markdown


def _fence(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    token, setting = tokens[at], env["setting"]
    language = token.info.strip()
    formula = formulas.of(token)
    if formula:
        return f'<div class="formula">{setting.formulas[formula]}</div>\n'
    if language == "quiz":
        return setting.quiz((token.map or [0])[0] + 1)
    if language == "mermaid":
        setting.used.add("mermaid")
        source, title = html.escape(token.content), html.escape(env.get("under", ""))
        return f'<figure class="diagram" data-diagram="{title}"><pre><code>{source}</code></pre></figure>\n'
    return code(token.content, language)


def _math(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    formula = formulas.of(tokens[at])
    rendered = env["setting"].formulas[formula]
    return f'<span class="formula">{rendered}</span>' if formula and formula[1] else rendered


def _link(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    href = env["setting"].link(str(tokens[at].attrGet("href")))
    tokens[at].attrSet("href", href or "")
    env.setdefault("open", []).append(href is not None)
    return self.renderToken(tokens, at, options, env) if href is not None else ""


def _link_close(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return "</a>" if env["open"].pop() else ""


def _image(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    target = env["setting"].link(str(tokens[at].attrGet("src"))) or ""
    words = html.escape(tokens[at].content)
    return f'<span class="picture scroll"><img src="{html.escape(target)}" alt="{words}" loading="lazy"></span>'


def _table_open(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return '<div class="scroll"><table>\n'


def _table_close(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return "</table></div>\n"


def _html(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    """HTML as it is, save for the comment that places a figure; the image below that one becomes its still."""
    match = FIGURE.fullmatch(tokens[at].content.strip())
    if not match:
        return tokens[at].content
    still = ""
    following = tokens[at + 2] if at + 2 < len(tokens) else None
    if following is not None and following.type == "inline" and [c.type for c in following.children or ()] == ["image"]:
        still = self.render([following], options, env)
        following.children = []
        tokens[at + 1].hidden = tokens[at + 3].hidden = True
    env["setting"].used.add(match[1])
    return env["setting"].figure(match[1], still)


_RULES = {
    "fence": _fence,
    "math_inline": _math,
    "math_display": _math,
    "link_open": _link,
    "link_close": _link_close,
    "image": _image,
    "table_open": _table_open,
    "table_close": _table_close,
    "html_block": _html,
}
