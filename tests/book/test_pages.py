"""Every page as a reader opens it: from a folder, wide and narrow, light and dark, with and without a script."""

import pytest

from drills import catalog

LESSONS = [lesson.stem for lesson in catalog.lessons()]
OTHERS = [path.stem for path in sorted((catalog.ROOT / "content").glob("*.md")) if path.stem not in LESSONS]
PAGES = ["index", *LESSONS, *OTHERS, f"{LESSONS[0]}_stub"]
DARK = ["index", LESSONS[0], LESSONS[3]]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
DRAWN_BY_OTHERS = [[".katex"], [".drawing svg"]]
"""What packages draw. It is thousands of elements, and no rule has anything to say of it."""

PROSE = """() => {
  const copy = document.querySelector('article').cloneNode(true);
  copy.querySelectorAll('code, pre, svg').forEach((one) => one.remove());
  return copy.textContent;
}"""
"""The words of a page without its code."""

SMALL = """() => [...document.querySelectorAll('.lab, .quiz')]
  .flatMap((one) => [...one.querySelectorAll('button, select, [type=text], [type=range]')])
  .filter((one) => one.offsetParent && one.getBoundingClientRect().height < 44)
  .map((one) => one.outerHTML)"""
"""What is less high than a fingertip."""

PHONE = {"width": 360, "height": 740}


def accessibility(page, axe, name):
    """What the checker finds, a line for each element. Code has the same colors everywhere: one lesson's is enough."""
    exclude = [*DRAWN_BY_OTHERS, *([] if name.startswith(LESSONS[0]) else [[".highlight"]])]
    page.evaluate(axe)
    found = page.evaluate(
        "([exclude, runOnly]) => axe.run({ exclude }, { runOnly, preload: false, resultTypes: ['violations'] })",
        [exclude, RULES],
    )
    return [f"{x['id']}: {node['target']} {node['failureSummary']}" for x in found["violations"] for node in x["nodes"]]


@pytest.mark.parametrize(("name", "scheme"), [(name, "light") for name in PAGES] + [(name, "dark") for name in DARK])
def test_a_page_loads_cleanly_is_drawn_in_full_and_passes_axe(read, axe, name, scheme):
    page = read(f"{name}.html", color_scheme=scheme).page
    assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    assert page.locator(".katex-error").count() == 0
    assert "$" not in page.evaluate(PROSE)
    for drawing in page.locator("[data-diagram] svg").all():
        assert drawing.bounding_box()["width"] > 200
        assert "Syntax error" not in drawing.text_content()
    assert page.locator("[data-diagram] pre:visible").count() == 0
    assert accessibility(page, axe, name) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_only_downwards_and_a_finger_finds_its_mark(read, name):
    page = read(f"{name}.html", viewport=PHONE).page
    width, shown = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width <= shown
    small = page.evaluate(SMALL)
    assert small == []


@pytest.mark.parametrize("name", LESSONS)
def test_without_a_script_a_page_has_its_maths_its_still_and_its_folded_answers(read, name):
    page = read(f"{name}.html", java_script_enabled=False).page
    assert page.locator(".katex").count() > 5
    assert all(one.locator(":is(table, img)").first.is_visible() for one in page.locator(".lab-still").all())
    assert not page.locator("form.quiz").first.is_visible()
    answer = page.locator("#self-check ~ .part details").first
    answer.locator("summary").click()
    assert answer.locator("p").first.is_visible()
    assert page.locator("[data-diagram] code").first.is_visible()


def test_pictures_and_diagrams_follow_the_pages_scheme_and_not_the_machines(read):
    page = read("l2_mlo_merge.html", color_scheme="light").page
    picture = page.locator(".picture img").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("(one) => one.complete", arg=picture.element_handle())
    before = picture.screenshot()
    page.get_by_title("Switch to dark").click()
    page.wait_for_function("document.querySelector('[data-diagram] svg').id.endsWith('dark')")
    picture.scroll_into_view_if_needed()
    assert picture.screenshot() != before
    assert picture.evaluate("(one) => getComputedStyle(one).colorScheme") == "dark"


@pytest.mark.parametrize("way", ["folder", "server"])
def test_search_finds_a_section(read, site, request, way):
    address = site.as_uri() if way == "folder" else request.getfixturevalue("served")
    page = read("index.html", address=address).page
    page.keyboard.press("Control+k")
    page.keyboard.type("address table")
    hit = page.locator("a[href*='l4_merge_states.html']", has_text="address").first
    hit.click()
    page.wait_for_url("**/l4_merge_states.html*")


def test_the_first_page_leads_to_the_first_lesson_and_pages_to_their_neighbors(read):
    page = read("index.html").page
    start = page.get_by_role("link", name="Start with lesson 1")
    assert start.bounding_box()["y"] < 600
    start.click()
    page.wait_for_url("**/l1_online_softmax.html")
    page.locator(".md-footer__link--next").click()
    page.wait_for_url("**/l2_mlo_merge.html")
    page.locator(".md-footer__link--prev").click()
    page.wait_for_url("**/l1_online_softmax.html")


def test_a_page_can_be_printed(read):
    page = read("l1_online_softmax.html").page
    page.emulate_media(media="print")
    assert not page.locator("form.quiz").first.is_visible()
    assert page.locator(".lab-still table").first.is_visible()
    assert not page.locator(".lab-live").first.is_visible()
    assert page.pdf()[:5] == b"%PDF-"
