"""Figures compute what the oracle computes, show it, answer to the keyboard, and take whatever is typed."""

import math
import random

import pytest
import torch

from drills.lessons import oracle

INF = math.inf
SCORES, VALUES = [1.0, 2.0, 3.0, 0.0], [10.0, 20.0, 30.0, 40.0]
CASES = [
    (SCORES, VALUES),
    ([0.0, 0.0, 10.0], [0.0, 0.0, 9.0]),
    ([-INF, -INF, 2.0], [7.0, 8.0, 9.0]),
    ([-INF, -INF], [1.0, 2.0]),
    ([5.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ([-60000.0, 60000.0, 59999.0], [1.0, 2.0, 3.0]),
    ([3.0], [4.0]),
    ([], []),
]
RUBBISH = [
    "-inf", "−∞ −∞", "5 5 5 5", "7", "1e100, -1e100", "1e101", "inf", "nan", "", " , ; ", "abc", "<img src=x>", "1 2 x",
    "[1, 2, 3, 0]", "1 " * 50, "9" * 400, "-0", "1e-320",
]  # fmt: skip


def tensor(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def lab(page):
    return page.locator(".lab")


def shown(page, key):
    return lab(page).locator(f'[data-out="{key}"]').text_content()


def sane(page):
    """No figure shows what a program says when it is lost."""
    text = lab(page).text_content()
    assert not [word for word in ("NaN", "undefined", "null", "Infinity", "[object") if word in text], text


def field(page, label):
    return lab(page).get_by_label(label, exact=True)


def button(page, name):
    return lab(page).get_by_role("button", name=name, exact=True)


def test_the_walk_ends_where_softmax_does(read):
    page = read("l1_online_softmax.html", diagrams=False).page
    for scores, values in CASES:
        wanted = oracle.attend(tensor(scores), tensor(values)[:, None]).item()
        m, l = (x.item() for x in oracle.softmax_stats(tensor(scores)))
        for block in (1, 2, 4, 8):
            steps = page.evaluate("([x, v, b]) => Maths.onlineSteps(x, v, b)", [scores, values, block])
            assert len(steps) == math.ceil(len(scores) / block)
            after = steps[-1]["after"] if steps else {"m": -INF, "l": 0.0, "o": 0.0}
            assert (after["m"], after["l"]) == (m, pytest.approx(l))
            assert page.evaluate("(state) => Maths.attention(state)", after) == pytest.approx(wanted)


def test_the_walk_shows_the_pages_numbers(read):
    page = read("l1_online_softmax.html", diagrams=False).page
    button(page, "Next block").click()
    assert [shown(page, key) for key in ("m", "l", "o", "attention")] == ["2", "1.368", "23.68", "17.31"]
    button(page, "Next block").click()
    assert [shown(page, key) for key in ("m", "l", "o", "attention")] == ["3", "1.553", "40.70", "26.21"]
    assert button(page, "Next block").is_disabled()


def test_the_walk_is_taken_with_the_keyboard_alone(read):
    page = read("l1_online_softmax.html", diagrams=False).page
    field(page, "Scores").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.textContent") != "Next block":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert shown(page, "attention") == "26.21"


def test_triples_merge_in_any_order_to_one_answer(read):
    page = read("l2_mlo_merge.html", diagrams=False).page
    draw = random.Random(8)
    script = """([x, v, order]) => {
      const parts = x.map((one, i) => Maths.triple([one], [v[i]]));
      for (const [a, b] of order) parts.splice(Math.min(a, b), 2, Maths.mergeTriples(parts[a], parts[b]));
      return parts[0];
    }"""
    for scores, values in (case for case in CASES if case[0]):
        m, l = (x.item() for x in oracle.softmax_stats(tensor(scores)))
        wanted = oracle.attend(tensor(scores), tensor(values)[:, None]).item()
        for _ in range(5):
            order = [(at := draw.randrange(n - 1), at + 1) for n in range(len(scores), 1, -1)]
            found = page.evaluate(script, [scores, values, order])
            assert (found["m"], found["l"], found["o"]) == (m, pytest.approx(l), pytest.approx(wanted))


@pytest.mark.parametrize("order", ["One after the other", "In pairs", "From the right"])
def test_the_tree_regroups_and_the_answer_stays(read, order):
    page = read("l2_mlo_merge.html", diagrams=False).page
    button(page, order).click()
    root = lab(page).locator("[data-root]").text_content()
    assert all(part in root for part in ("m 3", "l 1.553", "o 26.21"))
    assert "The same." in lab(page).locator(".lab-truth").text_content()
    field(page, "Merge by plain average (a known mistake)").check()
    assert "wrong" in lab(page).locator(".lab-truth").text_content()


def test_a_tree_is_built_by_choosing_parts_with_the_keyboard(read):
    page = read("l2_mlo_merge.html", diagrams=False).page
    for _ in range(3):
        parts = lab(page).locator("button.tree-box")
        parts.last.focus()
        page.keyboard.press("Enter")
        parts.first.focus()
        page.keyboard.press("Enter")
    assert "o 26.21" in lab(page).locator("[data-root]").text_content()


def test_states_merge_as_the_oracle_says_in_both_bases(read):
    page = read("l3_lse_bases.html", diagrams=False).page
    pairs = [(2.313, 3.049), (math.log(3072), math.log(64)), (-INF, 1.0), (-INF, -INF), (1e5, -1e5), (0.0, 0.0)]
    bases = {"natural": (torch.exp, torch.log), "two": (torch.exp2, torch.log2)}
    for s_a, s_b in pairs:
        for base, (exp, log) in bases.items():
            v, s = oracle.merge(tensor([[17.31], [30.47]]), tensor([s_a, s_b]), exp=exp, log=log)
            script = "([a, b, base]) => Maths.mergeStates({ s: a, o: 17.31 }, { s: b, o: 30.47 }, base)"
            found = page.evaluate(script, [s_a, s_b, base])
            assert (found["o"], found["s"]) == (pytest.approx(v.item()), pytest.approx(s.item()))


@pytest.mark.parametrize(
    ("given", "merged", "share"),
    [("base 2", "exp2 and log2", "2.04"), ("base 2", "exp and log", "0.37"), ("natural", "exp2 and log2", "6.40")],
)
def test_the_wrong_base_shows_the_pages_wrong_weights(read, given, merged, share):
    page = read("l3_lse_bases.html", diagrams=False).page
    button(page, "3,072 keys and 64").click()
    lab(page).get_by_role("radio", name=given, exact=True).check()
    lab(page).get_by_role("radio", name=merged, exact=True).check()
    assert shown(page, "right-b") == "2.04 %"
    assert shown(page, "here-b") == f"{share} %"
    assert ("Wrong" in lab(page).locator(".lab-says").text_content()) == (share != "2.04")


def test_equal_halves_hide_the_wrong_base_and_the_figure_says_so(read):
    page = read("l3_lse_bases.html", diagrams=False).page
    field(page, "LSE of A, natural").fill("5")
    field(page, "LSE of B, natural").fill("5")
    assert "does not show" in lab(page).locator(".lab-says").text_content()


def test_addresses_are_those_of_a_tensor(read):
    page = read("l4_merge_states.html", diagrams=False).page
    for S, N, H, D in ((2, 3, 2, 4), (1, 1, 1, 1), (4, 6, 3, 8), (3, 0, 2, 2)):
        s, v = torch.arange(S * N * H).reshape(S, N, H), torch.arange(S * N * H * D).reshape(S, N, H, D)
        for program in range(S * H):
            i, h = divmod(program, H)
            found = page.evaluate("([sizes, p]) => Maths.addresses(sizes, p)", [{"N": N, "H": H, "D": D}, program])
            assert [one["s"] for one in found["reads"]] == s[i, :, h].tolist()
            assert [[one["from"], one["to"]] for one in found["reads"]] == v[i, :, h][:, [0, -1]].tolist()
            assert found["writes"]["s"] == program


def test_the_map_lights_up_what_the_program_reads(read):
    page = read("l4_merge_states.html", diagrams=False).page
    lit = lab(page).locator("[data-mark=reads] .cell-number")
    assert lit.all_text_contents() == ["7", "9", "11"]
    lab(page).get_by_role("slider").focus()
    page.keyboard.press("Home")
    assert lit.all_text_contents() == ["0", "2", "4"]
    field(page, "Address it as [S, H, N] (a known mistake)").check()
    assert lit.all_text_contents() == ["0", "1", "2"]
    field(page, "N, states").select_option("0")
    assert lit.count() == 0
    sane(page)


def test_bytes_are_the_pages(read):
    page = read("l5_cascade.html", diagrams=False).page
    assert [shown(page, key) for key in ("keys-without", "bytes-without", "keys-with", "bytes-with")] == [
        "532,480", "2.18 GB", "16,384", "67.1 MB",
    ]  # fmt: skip
    slider = lab(page).get_by_role("slider").first
    slider.focus()
    for key in ("Home", "End", "ArrowLeft"):
        page.keyboard.press(key)
        sane(page)
    button(page, "One request").click()
    assert shown(page, "keys-without") == shown(page, "keys-with") == "8,320"
    assert "saves nothing" in lab(page).locator(".lab-says").text_content()


@pytest.mark.parametrize(
    ("name", "labels", "press"),
    [
        ("l1_online_softmax", ("Scores", "Values, one a score"), ("Next block", "To the end", "Back")),
        ("l2_mlo_merge", ("Scores, a part each", "Values"), ("One after the other", "In pairs", "From the right")),
        ("l3_lse_bases", ("LSE of A, natural", "LSE of B, natural"), ("A empty",)),
    ],
)
def test_a_figure_takes_whatever_is_typed(read, name, labels, press):
    page = read(f"{name}.html", diagrams=False).page
    for label in labels:
        for text in RUBBISH:
            field(page, label).fill(text)
            sane(page)
            for one in press:
                button(page, one).evaluate("(one) => one.click()")
            sane(page)
    assert lab(page).locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
