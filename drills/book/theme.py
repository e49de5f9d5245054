"""The site generator's settings, and the scripts and styles that are served with the pages.

Everything a page loads is copied from here or from the installed packages. Must never name a host.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from drills.book import pages
from drills.errors import GraderFailed

HERE = Path(__file__).parent
PACKAGES = {
    "mermaid.js": "@mermaid-js/tiny/dist/mermaid.tiny.js",
    "iframe-worker.js": "iframe-worker/shim/index.js",
    "katex.css": "katex/dist/katex.min.css",
}
"""File on the site ← file of a package."""

EVERYWHERE = ("answers.js", "quiz.js", "page.js")
"""The scripts of every page, in the order in which they run."""

CANONICAL = re.compile(r'<link rel="canonical" href="/[^"]*">\s*')
"""A page's own address, which the generator writes as if the book stood at the root of a host."""

FEATURES = ("navigation.footer", "navigation.sections", "navigation.top", "toc.follow", "search.highlight")


def write(folder: Path, docs: Path, modules: Path) -> None:
    """Copies overrides, scripts, styles and fonts to where the generator takes them from."""
    assets = docs / "assets" / "book"
    shutil.copytree(HERE / "static", assets)
    shutil.copytree(HERE / "overrides", folder / "overrides")
    for name, source in PACKAGES.items():
        shutil.copy(modules / source, assets / name)
    (assets / "fonts").mkdir()
    for font in (modules / "katex" / "dist" / "fonts").glob("*.woff2"):
        shutil.copy(font, assets / "fonts" / font.name)


def settings(found: list[pages.Source], repository: str) -> dict[str, object]:
    """The generator's configuration.

    The repository stands in the footer and not in `repo_url`: of that the generator's script asks GitHub for stars.
    """
    lessons = [{f"{source.lesson.short[1:]}. {source.title}": f"{source.name}.md"} for source in found if source.lesson]
    others = [{source.title: f"{source.name}.md"} for source in found if not source.lesson]
    return {
        "site_name": "Attention-state drills",
        "site_description": "How attention states are merged on a GPU: five lessons in Triton",
        "site_url": "",
        "docs_dir": "docs",
        "site_dir": "site",
        "use_directory_urls": False,
        "copyright": f'Apache-2.0 · <a href="{repository}">Repository</a>' if repository else "Apache-2.0",
        "theme": {
            "variant": "modern",
            "custom_dir": "overrides",
            "font": False,
            "features": list(FEATURES),
            "palette": [
                _palette("default", "light", "lucide/sun", "Switch to dark"),
                _palette("slate", "dark", "lucide/moon", "Switch to light"),
            ],
        },
        "plugins": ["search", "offline"],
        "markdown_extensions": ["attr_list", {"toc": {"permalink": True}}],
        "extra_css": ["assets/book/katex.css", "assets/book/book.css"],
        "extra_javascript": [f"assets/book/{name}" for name in EVERYWHERE],
        "nav": [{"Start": "index.md"}, {"Lessons": lessons}, {"Beyond": others}],
    }


def _palette(scheme: str, media: str, icon: str, says: str) -> dict[str, object]:
    return {
        "media": f"(prefers-color-scheme: {media})",
        "scheme": scheme,
        "toggle": {"icon": icon, "name": says},
    }


def finish(site: Path) -> None:
    """Takes out what is of no use without a fixed address: a site map, an error page, each page's own address."""
    for name in ("sitemap.xml", "sitemap.xml.gz", "404.html"):
        (site / name).unlink(missing_ok=True)
    for page in site.glob("*.html"):
        page.write_text(CANONICAL.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
    style = site / "assets" / "book" / "katex.css"
    if not style.is_file():
        raise GraderFailed("the site generator left the styles out")
