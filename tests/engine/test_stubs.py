"""A stub is the solution without what a learner writes, and a malformed marker is never guessed at."""

import pytest

from drills import stubs
from drills.errors import GraderFailed

SOLUTION = '''\
"""A lesson."""

import torch
import triton
import triton.language as tl


# BEGIN SOLUTION
@triton.jit
def helper_kernel(x_ptr):
    pass


# END SOLUTION
@triton.jit
def double_kernel(
    x_ptr,  # [N]
    n,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)
    # END SOLUTION


def given(x):
    """Given to the learner."""
    return x


def double(x):  # [N] -> [N]
    """Twice x."""
    out = torch.empty_like(x)
    # BEGIN SOLUTION
    double_kernel[(1,)](x, x.numel(), 16)
    return out
    # END SOLUTION


def _helper(x):
    # BEGIN SOLUTION
    return x
    # END SOLUTION
'''

STUB = '''\
"""A lesson."""

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(
    x_ptr,  # [N]
    n,
    BLOCK: tl.constexpr,
):
    pass


def given(x):
    """Given to the learner."""
    return x


def double(x):  # [N] -> [N]
    """Twice x."""
    out = torch.empty_like(x)
    raise NotImplementedError("double: your turn")


def _helper(x):
    raise NotImplementedError("_helper: your turn")
'''


def test_what_stands_between_the_markers_is_removed():
    assert stubs.make_stub(SOLUTION, "x.py") == STUB


def test_windows_line_endings_and_a_bom_make_the_same_stub():
    assert stubs.make_stub("\ufeff" + SOLUTION.replace("\n", "\r\n"), "x.py") == STUB


def test_exercises_are_the_public_functions_left_to_write():
    assert stubs.exercise_names(STUB, "x.py") == ("double",)


def test_markers_inside_strings_are_text():
    text = SOLUTION.replace('"""Twice x."""', '"""Twice x.\n\n    # BEGIN SOLUTION\n    """')
    assert len(stubs.find_blocks(text, "x.py")) == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("    # END SOLUTION\n\n\ndef given", "\n\ndef given", 34, "inside the block that began on line 21"),
        ("\n# END SOLUTION", "\n# end solution", 14, "alone on its line"),
        ("\n# END SOLUTION", "\n#END SOLUTION", 14, "alone on its line"),
        ("\n# BEGIN SOLUTION", "\n# BEGIN-SOLUTION", 8, "alone on its line"),
        ("import torch\n", "import torch  # BEGIN SOLUTION\n", 3, "alone on its line"),
        ("\n# BEGIN SOLUTION", "\n", 14, "without # BEGIN SOLUTION"),
        ("    return x\n    # END SOLUTION\n", "    return x\n", 42, "without # END SOLUTION"),
        ("    return out\n    # END SOLUTION", "    return out\n# END SOLUTION", 38, "not indented like"),
        ("def given", "def given)", 27, "the solution is not Python"),
    ],
)
def test_a_malformed_marker_is_an_error_that_names_file_and_line(old, new, line, says):
    assert old in SOLUTION
    with pytest.raises(GraderFailed) as caught:
        stubs.make_stub(SOLUTION.replace(old, new), "solutions/x.py")
    assert str(caught.value).startswith(f"solutions/x.py:{line}: ")
    assert says in str(caught.value)


def test_a_block_that_cuts_a_statement_is_an_error():
    text = "def f(x):\n    y = (\n    # BEGIN SOLUTION\n    x\n    )\n    # END SOLUTION\n    return y\n"
    with pytest.raises(GraderFailed, match="cuts a statement"):
        stubs.make_stub(text, "x.py")


def test_a_solution_without_markers_is_an_error():
    with pytest.raises(GraderFailed, match="nothing for a learner to write"):
        stubs.make_stub("x = 1\n", "x.py")
