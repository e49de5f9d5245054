"""Code that is wider than the screen: broken between tokens, nothing lost."""

import re

import pytest

from drills.catalog import ROOT
from drills.study.code_lines import broken

CODE = [line for path in sorted((ROOT / "solutions").glob("l*.py")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("width", [30, 54, 75])
def test_nothing_is_lost_and_nothing_too_wide(width):
    assert any(len(line) > width for line in CODE), "there is something to break"
    for line in CODE:
        pieces = broken(line, width)
        assert max(map(len, pieces)) <= width, line
        if width > 50:  # wider than the longest token
            assert not [piece for piece in pieces[1:] if piece.strip()[0] in "),]}"], line
        assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", line)


def test_a_line_breaks_between_tokens_and_goes_on_further_in():
    line = "    offsets = rows[:, None] * stride_row + columns[None, :]  # [BLOCK_N, BLOCK_D] of one head"
    assert broken(line, 40) == [
        "    offsets = rows[:, None] * stride_row",
        "        + columns[None, :]  # [BLOCK_N,",
        "        BLOCK_D] of one head",
    ]


def test_a_sign_or_star_stays_with_what_it_belongs_to():
    assert broken("    kernel[(M,)](x, out, *x.stride(), *out.stride(), -1)", 30) == [
        "    kernel[(M,)](x, out,",
        "        *x.stride(),",
        "        *out.stride(), -1)",
    ]


def test_a_text_is_kept_whole_where_there_is_room():
    assert broken('raise ValueError(message, "one two three four")', 30) == [
        "raise ValueError(message,",
        '    "one two three four")',
    ]


def test_a_word_longer_than_a_line_is_cut():
    assert broken("x" * 50, 30) == ["x" * 26, "    " + "x" * 24]


def test_a_line_that_fits_stays():
    assert broken("    return x", 30) == ["    return x"]
