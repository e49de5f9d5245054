"""A whole lesson of two exercises in a folder of its own, small enough to grade many times."""

from __future__ import annotations

from pathlib import Path

from drills.catalog import Entry, Selection

STEM = "l91_tiny"

SOLUTION = '''\
"""Doubling and negating."""

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(
    x_ptr,  # [N]
    y_ptr,  # [N]
    N,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=i < N), mask=i < N)
    # END SOLUTION


def double(x):
    """y[N] = 2 * x[N], float32."""
    # BEGIN SOLUTION
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(len(x), 16),)](x, y, len(x), BLOCK=16)
    return y
    # END SOLUTION


@triton.jit
def negate_kernel(x_ptr, stride, N, BLOCK: tl.constexpr):
    # BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = x_ptr + i * stride
    tl.store(at, -tl.load(at, mask=i < N), mask=i < N)
    # END SOLUTION


def negate_in_place(x):
    """x[N] becomes -x[N]. Returns None."""
    # BEGIN SOLUTION
    negate_kernel[(triton.cdiv(len(x), 16),)](x, x.stride(0), len(x), BLOCK=16)
    # END SOLUTION
'''

FACTS = '''\
"""Facts of the tiny lesson."""

import torch

from drills.lessons.base import Exercise, Lesson, Mistake, Output

LESSON = Lesson(
    "{stem}",
    "Tiny",
    (
        Exercise(
            "double",
            "double(x[N]) -> y[N]",
            lambda x: (2 * x.double(),),
            (Output("y", "value"),),
            0,
            lambda x: 0.0,
            lambda rng: (torch.randn(9, generator=rng),),
            floor=lambda x: 8 * len(x),
            must_read=lambda x: 4 * len(x),
        ),
        Exercise(
            "negate_in_place",
            "negate_in_place(x[N])",
            lambda x: (-x.double(),),
            (Output("x", "value", inplace=0),),
            0,
            lambda x: 0.0,
            lambda rng: (torch.randn(9, generator=rng),),
        ),
    ),
    (
        Mistake("squared", "double", lambda x: (x.double() ** 2,), "x * x is not x + x.", "squared"),
        Mistake("tripled", "double", lambda x: (3 * x.double(),), "That is three times x.", "tripled"),
    ),
)
'''

TESTS = '''\
"""Graded tests of the tiny lesson."""

import pytest
import torch


@pytest.mark.graded("double", "value")
@pytest.mark.parametrize("n", [5, 16, 33])
def test_twice_the_input(drill, n):
    drill.double(torch.randn(n, generator=drill.rng)).agrees()


@pytest.mark.graded("double", "edge")
def test_an_empty_input_gives_an_empty_result(drill):
    drill.double(torch.zeros(1)).agrees().is_exactly(y=0.0)


@pytest.mark.graded("double", "traffic")
def test_each_value_is_read_once(drill):
    drill.double(torch.randn(64, generator=drill.rng)).moves_at_most()


@pytest.mark.graded("double", "compile")
def test_double_compiles(drill):
    drill.compiles()


@pytest.mark.graded("negate_in_place", "value")
def test_the_sign_changes_in_place(drill):
    drill.negate_in_place(torch.randn(7, generator=drill.rng)).agrees()


@pytest.mark.graded("negate_in_place", "edge")
def test_a_slice_is_negated(drill):
    drill.negate_in_place(torch.randn(14, generator=drill.rng)[::2]).agrees()


@pytest.mark.graded("negate_in_place", "compile")
def test_negate_compiles(drill):
    drill.compiles()
'''


def build(root: Path, stem: str = STEM, tests: str = TESTS) -> Entry:
    """Writes the lesson under `root`; its solution is in solutions/."""
    for folder in ("content", "solutions", "tests", "drills/lessons"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "content" / f"{stem}.md").write_text("# Tiny\n")
    (root / "solutions" / f"{stem}.py").write_text(SOLUTION)
    (root / "tests" / f"test_{stem}.py").write_text(tests)
    (root / "drills" / "lessons" / f"{stem}.py").write_text(FACTS.format(stem=stem))
    return Entry(stem, root)


def answer(entry: Entry, folder: Path, *changes: tuple[str, str]) -> Path:
    """Writes the solution with these replacements to `folder` and returns the folder."""
    text = SOLUTION
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return written(entry, folder, text)


def written(entry: Entry, folder: Path, text: str) -> Path:
    """Writes `text` as the graded file to `folder` and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{entry.stem}.py").write_text(text)
    return folder


def selection(entry: Entry, *exercises: str) -> Selection:
    """These exercises, or all of them."""
    return Selection(entry, exercises or entry.exercises)
