"""The book's pages as Markdown for the site generator: the lessons, what else `content/` holds, the files they name.

Must never write: it gives texts, `build.py` puts them where they belong.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drills import catalog
from drills.book import exercises, figures, quiz_form, render
from drills.book.formulas import Formula
from drills.catalog import Entry
from drills.study import open_page
from drills.study.markdown import blocks
from drills.study.page import HINTS, Page

HOME = Path(__file__).parent / "home.md"


@dataclass(frozen=True)
class Source:
    """A page's Markdown before anything is made of it. lesson: None if it belongs to no lesson."""

    name: str
    text: str
    lesson: Entry | None = None
    page: Page | None = None

    @property
    def title(self) -> str:
        """The page's title, from its first heading."""
        return blocks(self.text)[0].text


def sources(root: Path) -> list[Source]:
    """Every page of `content/`: the lessons by number, then the others by name."""
    lessons = {lesson.page: lesson for lesson in catalog.lessons(root)}
    found = []
    for lesson in lessons.values():
        page = open_page.load(lesson)
        found.append(Source(lesson.stem, page.source, lesson, page))
    for path in sorted((root / "content").glob("*.md")):
        if path not in lessons:
            found.append(Source(path.stem, _read(path)))
    return found


def linker(names: set[str], repository: str) -> Callable[[str], str | None]:
    """How a link of a page in `content/` reads on the site; None where it would lead nowhere."""

    def link(target: str) -> str | None:
        name, hash_, anchor = target.partition("#")
        if ":" in name or not name:
            return target
        if name.removesuffix(".md") in names:
            return f"{name.removesuffix('.md')}.html{hash_}{anchor}"
        if name.startswith("figures/"):
            return target
        if not repository:
            return None
        path = name.removeprefix("../") if name.startswith("../") else f"content/{name}"
        return f"{repository}/blob/main/{path}{hash_}{anchor}"

    return link


def markdown(source: Source, formulas: dict[Formula, str], link: Callable[[str], str | None]) -> str:
    """One page of `content/`, ready for the site generator."""
    questions = source.page.questions if source.page else ()

    def quiz(line: int) -> str:
        question = [one for one in questions if one.line < line][-1]
        return quiz_form.form(question, setting)

    setting = render.Setting(formulas, link, quiz, figures.placed)
    before = {HINTS: exercises.section(source.lesson, source.page)} if source.lesson else {}
    body = render.page(source.text, setting, before)
    scripts = "".join(f'<script src="assets/book/{name}" defer></script>' for name in _scripts(setting))
    words = render.description(source.text)
    return f'{render.front_matter(description=words)}{body}\n<div data-lesson="{source.name}">{scripts}</div>\n'


def _scripts(setting: render.Setting) -> list[str]:
    """The scripts that only some pages need, in the order in which they must run."""
    found = ["mermaid.js", "diagrams.js"] if "mermaid" in setting.used else []
    for name in sorted(setting.used & set(figures.FIGURES)):
        found += [script for script in figures.scripts(name) if script not in found]
    return found


def home(found: list[Source], repository: str) -> str:
    """The first page: what this is, and the way to the first lesson."""
    lessons = [one for one in found if one.lesson]
    rows = "\n".join(
        f'<li><a href="{one.name}.html">{html.escape(one.title)}</a> <span>{_list(one.lesson.exercises)}</span></li>'
        for one in lessons
        if one.lesson
    )
    others = "\n".join(f'<li><a href="{o.name}.html">{html.escape(o.title)}</a></li>' for o in found if not o.lesson)
    where = f'<a href="{repository}">The repository</a>' if repository else "The repository"
    text = HOME.read_text(encoding="utf-8")
    for key, value in {"FIRST": lessons[0].name, "LESSONS": rows, "OTHERS": others, "REPOSITORY": where}.items():
        text = text.replace(f"@{key}@", value)
    return text


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(f"<code>{name}</code>" for name in names)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")
