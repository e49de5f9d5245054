"""The book, built once, and a browser to read it with. Where either is not to be had, the tests say so and skip.

With `BOOK_TESTS=required` in the environment they fail instead; with `BOOK_TESTS=elsewhere` they skip. CI sets both: it
runs these tests beside the others.
"""

import functools
import importlib.util
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from drills import catalog
from drills.errors import WrongUse

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = os.environ.get("BOOK_TESTS") == "required"
ELSEWHERE = os.environ.get("BOOK_TESTS") == "elsewhere"
NO_PACKAGES = "the book's packages are not installed: python -m pip install -r requirements-book.txt"


def pytest_collection_modifyitems(items) -> None:
    """Skips this folder, a line a file, where nothing of it can run, or is to."""
    if not ELSEWHERE and (REQUIRED or all(importlib.util.find_spec(name) for name in ("zensical", "playwright"))):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="BOOK_TESTS=elsewhere" if ELSEWHERE else NO_PACKAGES))


def lacking(what: str) -> None:
    """Skips, or fails where these tests are required."""
    if REQUIRED:
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder with the built book."""
    if importlib.util.find_spec("zensical") is None:
        lacking(NO_PACKAGES)
    from drills.book import build, packages

    try:
        packages.program("npm")
    except WrongUse as error:
        lacking(str(error))
    folder = tmp_path_factory.mktemp("book") / "site"
    build.build(catalog.ROOT, folder, "")
    return folder


@pytest.fixture(scope="session")
def axe(site) -> str:
    """The accessibility checker's script."""
    from drills.book import packages

    return (packages.installed(catalog.ROOT) / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def chromium():
    """A browser without a window: the system's Chromium, else the one that Playwright has downloaded."""
    if importlib.util.find_spec("playwright") is None:
        lacking(NO_PACKAGES)
    from playwright.sync_api import Error, sync_playwright

    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Error as error:
            lacking(f"no Chromium to test the book with: install it (apt-get install chromium): {error.message[:200]}")
        yield browser
        browser.close()


NO_DIAGRAMS = "globalThis.mermaid = { initialize() {}, render: async () => ({ svg: '<svg viewBox=\"0 0 1 1\"/>' }) };"
"""Stands in for Mermaid where a test is not about diagrams: half the time of opening a page is spent on them."""


class Reader:
    """A browser window on the book that keeps what went wrong and what was asked for."""

    def __init__(self, context, address: str) -> None:
        self.context = context
        self.page = context.new_page()
        self.address = address
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda line: line.type in ("error", "warning") and self.troubles.append(line.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("requestfailed", lambda one: self.troubles.append(f"failed: {one.url}"))
        self.page.on("request", lambda one: self.requests.append(one.url))

    def open(self, name: str):
        """Opens a page of the book and waits until its scripts have run and its diagrams are drawn."""
        self.page.goto(f"{self.address}/{name}")
        self.page.wait_for_load_state("load")
        if self.page.evaluate("Boolean(globalThis.Book)"):
            self.page.wait_for_function(
                "[...document.querySelectorAll('[data-diagram]')].every((one) => one.querySelector('svg'))"
            )
        return self.page


@pytest.fixture
def read(site, chromium):
    """`read(name, **context)` opens a page from the folder in a new window; afterwards nothing may have gone wrong."""
    readers = []

    def opened(name: str, address: str = "", script: str = "", diagrams: bool = True, **settings):
        settings = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | settings
        reader = Reader(chromium.new_context(**settings), address or site.as_uri())
        readers.append(reader)
        if not diagrams:
            reader.context.route(
                "**/mermaid.js", lambda route: route.fulfill(body=NO_DIAGRAMS, content_type="text/javascript")
            )
        if script:
            reader.context.add_init_script(script)
        reader.open(name)
        return reader

    yield opened
    for reader in readers:
        troubles, requests, address = reader.troubles, reader.requests, reader.address
        reader.context.close()
        assert not troubles, "\n".join(troubles)
        strangers = [url for url in requests if not url.startswith((f"{address}/", "data:", "blob:"))]
        assert not strangers, f"requests left the book: {strangers}"


@pytest.fixture
def served(site):
    """The book's address on a web server of this machine, under a path of its own as on GitHub Pages."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def translate_path(self, path):
            return super().translate_path(path.removeprefix("/drills"))

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/drills"
    server.shutdown()
    thread.join()
    server.server_close()
