"""What the built pages point to is there, and nothing is loaded from another host."""

from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from drills import catalog

EXERCISES = [(lesson.stem, name) for lesson in catalog.lessons() for name in lesson.exercises]


class Page(HTMLParser):
    """A page's anchors, links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href") is not None:
            self.links.append(values["href"])
        elif values.get("src") or (tag == "link" and values.get("href") and values.get("rel") != "canonical"):
            self.loads.append(values.get("src") or values["href"])


@pytest.fixture(scope="module")
def pages(site):
    return {path.name: Page(path.read_text(encoding="utf-8")) for path in site.glob("*.html")}


def test_every_link_inside_the_book_leads_somewhere(pages, site):
    dead = []
    for name, page in pages.items():
        for link in page.links:
            if link.startswith(("https://", "http://")):
                continue
            target, _, anchor = link.partition("#")
            target = unquote(target.removeprefix("./"))
            target = "index.html" if target == "." else target or name
            if target in pages and anchor in pages[target].anchors:
                continue
            if anchor or not (site / target).is_file():
                dead.append(f"{name}: {link}")
    assert dead == []


def test_every_link_out_of_the_book_is_https(pages):
    assert [link for page in pages.values() for link in page.links if link.startswith("http://")] == []


def test_nothing_is_loaded_from_another_host(pages, site):
    for name, page in pages.items():
        for address in page.loads:
            assert "//" not in address, f"{name} loads {address}"
            assert (site / address.partition("?")[0].removeprefix("./")).is_file(), f"{name}: {address}"
    style = (site / "assets" / "book" / "katex.css").read_text()
    assert "//" not in style.replace("/*!", "")


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_an_exercise_links_to_its_stub_tests_hints_and_the_real_kernels(pages, site, stem, name):
    links = pages[f"{stem}.html"].links
    stub = catalog.find(stem).lesson.stub.split("\n")
    line = next(i for i, text in enumerate(stub, 1) if text.startswith(f"def {name}("))
    assert f"{stem}_stub.html#L{line}" in links
    assert any(link.startswith(f"{stem}_tests.html#L") for link in links)
    assert any(link.startswith(f"#{name}") for link in links)
    assert "#how-flashinfer-flashattention-and-vllm-do-it" in links


def test_no_solution_is_in_the_book(site):
    for lesson in catalog.lessons():
        text = (site / f"{lesson.stem}_stub.html").read_text(encoding="utf-8")
        assert "your turn" in text
        assert "BEGIN SOLUTION" not in text


def test_pages_of_code_are_not_searched(site):
    assert "_stub.html" not in (site / "search.json").read_text(encoding="utf-8")
