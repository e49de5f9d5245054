"""Styled text and how it breaks into lines and into the columns of a table.

Knows nothing of Markdown. Must never print.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.style import Style

Run = tuple[str, Style]
"""A piece of text in one style."""

Line = list[Run]

NAME = 30
"""Characters: a word in a table that is no longer is not broken while there is room."""

PLAIN, BOLD, DIM, CODE = Style(), Style(bold=True), Style(dim=True), Style(color="cyan")


def plain(line: Line) -> str:
    """The words of a line without their styles."""
    return "".join(words for words, _ in line)


def wrapped(text: Line, width: int) -> list[Line]:
    """Text broken into lines between words, and within a word that is longer than a line."""
    return [_part(text, begin, end) for begin, end in _cuts(plain(text), width)]


def _cuts(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends."""
    begin = 0
    for paragraph in text.split("\n"):
        stop = begin + len(paragraph)
        while stop - begin > width:
            cut = text.rfind(" ", begin, begin + width + 1)
            cut = cut if cut > begin else begin + width
            yield begin, cut
            begin = cut + 1 if text[cut] == " " else cut
        yield begin, stop
        begin = stop + 1


def _part(text: Line, begin: int, end: int) -> Line:
    """The characters from `begin` to `end`, in their styles, without blanks at the end."""
    found: Line = []
    at = 0
    for words, style in text:
        piece = words[max(0, begin - at) : max(0, end - at)]
        if piece:
            found.append((piece, style))
        at += len(words)
    return trimmed(found)


def trimmed(line: Line) -> Line:
    """The line without blanks at its end."""
    while line and not line[-1][0].strip():
        line = line[:-1]
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else line


def table(rows: list[list[Line]], width: int) -> list[Line]:
    """Rows of cells as lines; the first row is the head."""
    widths = _widths([[plain(cell) for cell in row] for row in rows], width)
    found: list[Line] = []
    for number, row in enumerate(rows):
        cells = [wrapped(cell, room) for cell, room in zip(row, widths, strict=False)]
        for parts in zip_longest(*cells, fillvalue=[]):
            found.append(_side_by_side(parts, widths, BOLD if number == 0 else PLAIN))
        if number == 0:
            found.append([("─" * (sum(widths) + 2 * len(widths) - 2), DIM)])
    return found


def _side_by_side(parts: tuple[Line, ...], widths: list[int], style: Style) -> Line:
    found: Line = []
    for part, room in zip(parts, widths, strict=False):
        found += [(words, style + own) for words, own in part]
        found.append((" " * (room + 2 - len(plain(part))), PLAIN))
    return trimmed(found)


def _widths(rows: list[list[str]], width: int) -> list[int]:
    """How wide each column is: as its longest cell if that fits, else its longest word and a share of the rest."""
    columns = list(zip_longest(*rows, fillvalue=""))
    width -= 2 * (len(columns) - 1)
    whole = [max(1, *map(len, column)) for column in columns]
    if sum(whole) <= width:
        return whole
    least = [max([1, *(min(len(word), NAME) for cell in column for word in cell.split())]) for column in columns]
    if sum(least) > width:
        return [max(1, width * room // sum(least)) for room in least]
    spare, wish = width - sum(least), sum(whole) - sum(least)
    return [room + spare * (full - room) // wish for room, full in zip(least, whole, strict=True)]
