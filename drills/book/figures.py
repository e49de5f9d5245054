"""The figures that move: what stands on the page for each, and the numbers it starts from.

A figure is a still (the page's own image, or a table made here) that its script replaces. A still's numbers are
computed in plain Python; a test holds them, and what the script computes, to the oracle in `drills/lessons`.
Must never import torch: a machine that only builds the book needs none.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from drills.errors import WrongUse

SCORES = (1.0, 2.0, 3.0, 0.0)
VALUES = (10.0, 20.0, 30.0, 40.0)
"""The story of all five pages: one query, four keys."""

SHARED = ("maths.js", "lab.js")
"""What every figure's script needs before it."""

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Figure:
    """title: what the reader can do. case: what the script starts from.

    still: a table of the same case, head first; None where the page has an image of it.
    """

    title: str
    case: dict[str, object]
    still: Callable[[], Rows] | None = None


def number(x: float) -> str:
    """A number as the figures' scripts show it: 1.368, 26.21, −∞."""
    if math.isinf(x):
        return "−∞" if x < 0 else "∞"
    text = f"{abs(x):.0f}" if x == int(x) else f"{abs(x):.{2 if abs(x) >= 10 else 3}f}"
    return f"−{text}" if x < 0 else text


def triple(scores: tuple[float, ...], values: tuple[float, ...]) -> tuple[float, float, float]:
    """m, l and the normalized o of some keys; at least one score is finite."""
    m = max(scores)
    weights = [math.exp(x - m) for x in scores]
    l = sum(weights)
    return m, l, sum(w * v for w, v in zip(weights, values, strict=True)) / l


def _lse(scores: tuple[float, ...]) -> float:
    m, l, _ = triple(scores, (0.0,) * len(scores))
    return m + math.log(l)


def _walk() -> Rows:
    rows: Rows = [("after", "m", "l", "o", "o / l")]
    for end in (2, 4):
        m, l, attention = triple(SCORES[:end], VALUES[:end])
        rows.append((f"block {end // 2}", number(m), number(l), number(attention * l), number(attention)))
    return rows


def _orders() -> Rows:
    rows: Rows = [("part", "m", "l", "o")]
    for keys in ((0,), (1,), (2,), (3,), (0, 1), (2, 3), (0, 1, 2), (0, 1, 2, 3)):
        state = triple(tuple(SCORES[i] for i in keys), tuple(VALUES[i] for i in keys))
        rows.append((f"keys {', '.join(map(str, keys))}" if keys[1:] else f"key {keys[0]}", *map(number, state)))
    return rows


def _shares() -> Rows:
    rows: Rows = [("share of A", "the page's example", "3,072 keys and 64")]
    cases = ((_lse(SCORES[:2]), _lse(SCORES[2:])), (math.log(3072), math.log(64)))
    ways = (
        ("right", lambda a, b: math.exp(a - b)),
        ("exp on base-2 numbers", lambda a, b: math.exp((a - b) / math.log(2))),
        ("exp2 on natural numbers", lambda a, b: 2 ** (a - b)),
    )
    for name, ratio in ways:
        rows.append((name, *(f"{100 * ratio(a, b) / (1 + ratio(a, b)):.2f} %" for a, b in cases)))
    return rows


def _bytes() -> Rows:
    case = FIGURES["cascade_bytes"].case
    requests, prefix, own, heads, columns = (int(str(case[name])) for name in ("B", "P", "U", "Hkv", "D"))
    each = 4 * heads * columns
    without, with_ = requests * (prefix + own), prefix + requests * own
    return [
        (f"B = {requests}, P = {prefix:,}, U = {own}", "keys read", "bytes"),
        ("without cascade", f"{without:,}", f"{without * each / 1e9:.2f} GB"),
        ("with cascade", f"{with_:,}", f"{with_ * each / 1e6:.1f} MB"),
    ]


STORY: dict[str, object] = {"scores": SCORES, "values": VALUES}
FIGURES = {
    "online_softmax": Figure("Walk over the scores, and change them", {**STORY, "block": 2}, _walk),
    "merge_tree": Figure("Merge the parts in any order", STORY, _orders),
    "lse_bases": Figure(
        "Switch the base",
        {
            "lse": (_lse(SCORES[:2]), _lse(SCORES[2:])),
            "o": (triple(SCORES[:2], VALUES[:2])[2], triple(SCORES[2:], VALUES[2:])[2]),
            "lopsided": (math.log(3072), math.log(64)),
        },
        _shares,
    ),
    "address_map": Figure("Follow one program", {"S": 2, "N": 3, "H": 2, "D": 4, "program": 3}),
    "cascade_bytes": Figure(
        "Count the bytes",
        {"B": 64, "P": 8192, "U": 128, "Hkv": 8, "G": 4, "D": 128, "balance": 186},
        _bytes,
    ),
}
"""By the name that the page's comment and the script's file have."""


def scripts(name: str) -> list[str]:
    """The scripts of a figure, in the order in which they must run."""
    return [*SHARED, f"{name}.js"]


def placed(name: str, still: str) -> str:
    """What stands on the page where a figure is placed; WrongUse if there is no such figure.

    still: the page's own image, "" if it has none there.
    """
    if name not in FIGURES:
        raise WrongUse(f"a page places a figure that is not there: no figure '{name}' among {', '.join(FIGURES)}")
    figure = FIGURES[name]
    if not still and figure.still is None:
        raise WrongUse(f"the figure '{name}' has no still: the page needs an image right below its comment")
    if figure.still is not None:
        still += _table(figure.still())
    case = html.escape(json.dumps(figure.case), quote=True)
    return (
        f'<section class="lab" data-figure="{name}" data-case="{case}" aria-labelledby="lab-{name}">\n'
        f'<p class="lab-title" id="lab-{name}">{html.escape(figure.title)}</p>\n'
        f'<div class="lab-still">{still}</div>\n'
        f'<div class="lab-live" hidden></div>\n</section>\n'
    )


def _table(rows: Rows) -> str:
    head = "".join(f'<th scope="col">{cell}</th>' for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for first, *cells in rows[1:]
    )
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>\n</table></div>'
