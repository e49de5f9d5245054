"""Lesson 4 with few graded tests, in a folder of its own: what a hostile answer is graded on many times."""

from __future__ import annotations

import shutil
from pathlib import Path

from drills.catalog import ROOT, Entry, Selection

STEM = "l4_merge_states"
COPIED = ("content/{}.md", "solutions/{}.py", "drills/lessons/{}.py", "mine/{}.py")

TESTS = '''\
"""Values, an empty state, and the compiler, once each."""

import math

import pytest
import torch


def states(rng, dtype=torch.float32):
    return torch.randn((3, 2, 20), generator=rng).to(dtype), 8 + 2 * torch.randn((3, 2), generator=rng)


@pytest.mark.graded("merge_state", "value")
def test_two_states_merge(drill):
    drill.merge_state(*states(drill.rng), *states(drill.rng)).agrees()


@pytest.mark.graded("merge_state", "value")
def test_halves(drill):
    drill.merge_state(*states(drill.rng, torch.float16), *states(drill.rng, torch.float16)).agrees()


@pytest.mark.graded("merge_state", "edge")
def test_one_empty_state(drill):
    v, s = states(drill.rng)
    s[1] = -math.inf
    drill.merge_state(v, s, *states(drill.rng)).agrees()


@pytest.mark.graded("merge_state", "traffic")
def test_traffic(drill):
    drill.merge_state(*states(drill.rng), *states(drill.rng)).moves_at_most()


@pytest.mark.graded("merge_state", "compile")
def test_compiles(drill):
    drill.compiles()
'''


def build(root: Path) -> Selection:
    """The lesson under `root`; its one exercise selected."""
    for name in COPIED:
        target = root / name.format(STEM)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name.format(STEM), target)
    (root / "tests").mkdir()
    (root / "tests" / f"test_{STEM}.py").write_text(TESTS)
    return Selection(Entry(STEM, root), ("merge_state",))
