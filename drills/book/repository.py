"""Where the repository is on the web, for links to files that the book does not hold. May be nowhere: then no links."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from urllib.parse import urlsplit

from drills.errors import WrongUse

NAMES = ("repository", "source", "source code", "homepage")
"""Keys of pyproject's [project.urls] that may name the repository, the best first."""


def address(root: Path, given: str | None) -> str:
    """The repository's web address without a slash at its end: as given, else from pyproject.toml, else ""."""
    if given is None:
        urls = {name.lower(): url for name, url in _project(root).get("urls", {}).items()}
        given = next((urls[name] for name in NAMES if name in urls), "")
    if given and (urlsplit(given).scheme not in ("https", "http") or not urlsplit(given).netloc):
        raise WrongUse(f'--repository takes a web address, such as https://example.org/drills, not "{given}"')
    return given.rstrip("/")


def _project(root: Path) -> dict:
    reader = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return reader.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
