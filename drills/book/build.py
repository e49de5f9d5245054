"""Builds the book: the pages of `content/` as a folder of HTML that needs no network and no server.

The site generator is Zensical. It is the successor that the authors of Material for MkDocs work on (Material itself
takes only fixes, and those until November 2026; MyST's HTML loads its scripts from a server's root and so does not open
from a folder). It builds this book in a second, writes plain HTML, and its search works from `file://`.

Must never write outside the folder asked for and `.drills/book/`, and never replace a folder that is not a book.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from drills.book import exercises, formulas, packages, pages, theme
from drills.errors import GraderFailed, WrongUse
from drills.study.markdown import parser

MARK = ".attention-state-book"
"""The file by which a folder is known to be a book that may be replaced."""

NOT_INSTALLED = "the book needs packages of its own: python -m pip install -r requirements-book.txt"


def build(root: Path, output: Path, repository: str) -> int:
    """Builds the book of the repository at `root` into `output`; returns how many pages. DrillError if it cannot."""
    _may_replace(output)
    if importlib.util.find_spec("zensical") is None:
        raise WrongUse(NOT_INSTALLED)
    modules = packages.installed(root)
    found = pages.sources(root)
    with tempfile.TemporaryDirectory(prefix="book-") as name:
        folder = Path(name).resolve()
        count = _prepare(folder, root, found, modules, repository)
        _generate(folder)
        built = folder / "site"
        theme.finish(built)
        (built / MARK).touch()
        _replace(output, built)
    return count


def _prepare(folder: Path, root: Path, found: list[pages.Source], modules: Path, repository: str) -> int:
    """Writes everything that the generator reads; returns the number of pages."""
    docs = folder / "docs"
    link = pages.linker({source.name for source in found}, repository)
    html = formulas.rendered(
        {formula for source in found for formula in formulas.within(parser().parse(source.text))}, modules
    )
    texts = {"index": pages.home(found, repository)}
    for source in found:
        texts[source.name] = pages.markdown(source, html, link)
        if source.lesson:
            texts |= exercises.code_pages(source.lesson, source.title, repository)
    theme.write(folder, docs, modules)
    shutil.copytree(root / "content" / "figures", docs / "figures")
    for name, text in texts.items():
        (docs / f"{name}.md").write_text(text, encoding="utf-8")
    settings = theme.settings(found, repository)
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    return len(texts)


def _generate(folder: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "mkdocs.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode or not (folder / "site" / "index.html").is_file():
        said = (done.stderr + done.stdout).strip().splitlines()
        raise GraderFailed(f"the site generator failed: {' '.join(said[-3:]) or 'it says nothing'}")


def _may_replace(output: Path) -> None:
    if output.is_dir() and any(output.iterdir()) and not (output / MARK).is_file():
        raise WrongUse(f"{output} is there and is no book: name another folder with -o, or remove it")
    if output.exists() and not output.is_dir():
        raise WrongUse(f"{output} is a file: name a folder with -o")


def _replace(output: Path, built: Path) -> None:
    try:
        if output.is_dir():
            shutil.rmtree(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, output)
    except OSError as error:
        raise WrongUse(f"{output} cannot be written: {error.strerror or error}") from None
