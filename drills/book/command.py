"""`grade.py book`: the pages of `content/` as a web site in a folder, with figures that move and quizzes that answer.

Must never import torch: only the pages are read.
"""

from __future__ import annotations

import argparse
import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rich.console import Console

from drills import catalog
from drills.book import build, repository
from drills.errors import PASSED, WrongUse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to (left out: site/)")
    parser.add_argument("--repository", metavar="URL", help="its web address (left out: as in pyproject.toml)")
    parser.add_argument("--serve", nargs="?", type=int, const=8000, metavar="PORT", help="then show it to this machine")


def run(options: argparse.Namespace, console: Console) -> int:
    """Builds the book, and serves it if that was asked for."""
    output = (options.output or catalog.ROOT / "site").resolve()
    count = build.build(catalog.ROOT, output, repository.address(catalog.ROOT, options.repository))
    console.print(f" {count} pages. Open {output / 'index.html'}", soft_wrap=True, highlight=False)
    if options.serve is not None:
        _serve(output, options.serve, console)
    return PASSED


def _serve(folder: Path, port: int, console: Console) -> None:
    handler = functools.partial(_Quiet, directory=str(folder))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        raise WrongUse(f"port {port} cannot be used: {getattr(error, 'strerror', None) or error}") from None
    with server:
        console.print(f" http://127.0.0.1:{server.server_port}/  (Ctrl-C ends it)", highlight=False)
        server.serve_forever()


class _Quiet(SimpleHTTPRequestHandler):
    """A file server that does not report every request."""

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
