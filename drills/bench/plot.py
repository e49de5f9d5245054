"""An SVG of how near the floor each function comes, against the bytes that it must move. Plain text out, no library."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from drills.bench.rows import Row

WIDTH, HEIGHT, LEFT, TOP, PANEL = 720, 320, 56, 40, 220
COLORS = ("#2f7ed8", "#e07b00", "#2a9d4a", "#c0392b", "#8e5cc2", "#7f7f7f", "#17a2b8")


def draw(rows: Sequence[Row]) -> str:
    """A panel an exercise: x the least bytes (log), y floor over device time; float16 rows where there are any."""
    timed = [row for row in rows if row.graph and row.bytes]
    halves = [row for row in timed if row.dtype == "float16"]
    timed = halves or timed
    exercises = list(dict.fromkeys(row.exercise for row in timed))
    who = list(dict.fromkeys(row.who for row in timed))
    colors = {name: COLORS[at % len(COLORS)] for at, name in enumerate(who)}
    height = HEIGHT * max(1, len(exercises))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12" role="img" aria-labelledby="t">',
        f'<title id="t">Floor over device time against bytes moved: {html.escape(", ".join(exercises))}</title>',
        "<style>text{fill:#555}.axis{stroke:#999;fill:none}"
        "@media(prefers-color-scheme:dark){text{fill:#bbb}.axis{stroke:#777}}</style>",
    ]
    for at, exercise in enumerate(exercises):
        parts += _panel([row for row in timed if row.exercise == exercise], exercise, at * HEIGHT, colors)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(rows: Sequence[Row], title: str, top: int, colors: dict[str, str]) -> list[str]:
    low = math.floor(math.log10(min(row.bytes for row in rows)))
    high = max(low + 1, math.ceil(math.log10(max(row.bytes for row in rows))))
    y0 = top + TOP + PANEL

    def x_of(size: float) -> float:
        return LEFT + (math.log10(size) - low) / (high - low) * (WIDTH - LEFT - 20)

    def y_of(share: float) -> float:
        return y0 - min(share, 1.2) / 1.2 * PANEL

    parts = [f'<text x="{LEFT}" y="{top + 18}" font-weight="bold">{html.escape(title)}: floor / device time</text>']
    for share in (0.0, 0.5, 1.0):
        y = y_of(share)
        parts.append(
            f'<path class="axis" d="M{LEFT} {y:.1f}H{WIDTH - 20}" stroke-dasharray="{"" if share == 0 else "3 4"}"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.1f}</text>')
    for power in range(low, high + 1):
        parts.append(f'<text x="{x_of(10**power):.1f}" y="{y0 + 18}" text-anchor="middle">{_bytes(power)}</text>')
    names = list(dict.fromkeys(row.who for row in rows))
    for at, name in enumerate(names):
        points = sorted((row.bytes, row.share) for row in rows if row.who == name)
        color = colors[name]
        for size, share in points:
            parts.append(
                f'<circle cx="{x_of(size):.1f}" cy="{y_of(share):.1f}" r="4" fill="{color}" fill-opacity="0.75"/>'
            )
        x = LEFT + at * 95
        parts.append(f'<circle cx="{x + 4}" cy="{y0 + 40}" r="4" fill="{color}"/>')
        parts.append(f'<text x="{x + 14}" y="{y0 + 44}">{html.escape(name)}</text>')
    return parts


def _bytes(power: int) -> str:
    units = ("B", "kB", "MB", "GB", "TB")
    return f"{10 ** (power % 3)} {units[min(power // 3, len(units) - 1)]}"
