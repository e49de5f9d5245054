"""Sentences wrap between words; a path and a command stay whole."""

import pytest

from drills.study.prose import wrapped

COMMAND = "python grade.py show l4.merge_state --anyway"
TEXT = f"merge_state has not passed yet: {COMMAND}  shows it (from l4_merge_states.0007.2026-11-29T23-00.py)."


@pytest.mark.parametrize("width", [50, 60, 80, 100])
def test_no_word_path_or_command_is_cut(width):
    lines = wrapped(TEXT, width, " ").split("\n")
    assert any(COMMAND in line for line in lines)
    assert any("l4_merge_states.0007.2026-11-29T23-00.py)." in line for line in lines)
    assert max(map(len, lines)) <= width
    assert all(line.startswith(" ") and not line.startswith("  ") for line in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(TEXT.split())


def test_what_is_longer_than_a_line_has_one_of_its_own():
    path = "mine/.backup/" + "x" * 30
    assert wrapped(f"Kept in {path} now.", 24) == f"Kept in\n{path}\nnow."


def test_a_line_that_fits_stays_as_it_is():
    assert wrapped("python grade.py undo  brings it back.", 80) == "python grade.py undo  brings it back."
