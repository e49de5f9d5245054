"""How far an answer may be from the float64 oracle, and why. LESSONS.md's rules for all lessons, as code.

Knows no exercise by name and never looks at an answer: a tolerance comes from the expected result alone.
"""

from __future__ import annotations

import torch

from drills.judge.expected import case
from drills.lessons.base import Args, Exercise, Output

RELATIVE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Four units in the last place of a half value, 84 of a float32: room for weights that were cast to half before a
product, and for any order of summation."""

OF_THE_TENSOR = 0.05
"""A row whose values cancel is small by accident: its error is measured against 5 % of the whole tensor as well."""

SCORE_STEP = 2.0**-22
"""An s of size |s| is stored in steps of up to 2⁻²³ · |s|, and a weight inherits that as a relative error."""

LSE_ABSOLUTE = 1e-5
L_RELATIVE = 1e-5


def tolerance(exercise: Exercise, args: Args, output: Output, expected: torch.Tensor) -> torch.Tensor:
    """The largest allowed |got - expected| of every element of `expected` (float64, any shape), as float64.

    kind "value": rel * scale, where scale is the row's largest |expected| over the last axis plus 5 % of the tensor's
    and rel is RELATIVE[dtype read] + 2⁻²² * the case's largest |score or s|.
    kind "lse": max(1e-5, |expected| * 2⁻²²). kind "m": 0. kind "l": 1e-5 * |expected|. ValueError for another kind.
    """
    size = expected.to(torch.float64).abs().nan_to_num(nan=0.0, posinf=0.0)
    if output.kind == "value":
        return _of_values(exercise, args, size)
    if output.kind == "lse":
        return (size * SCORE_STEP).clamp(min=LSE_ABSOLUTE)
    if output.kind == "m":
        return torch.zeros_like(size)
    if output.kind == "l":
        return size * L_RELATIVE
    raise ValueError(f"{exercise.name}: output {output.name} has the unknown kind {output.kind!r}")


def _of_values(exercise: Exercise, args: Args, size: torch.Tensor) -> torch.Tensor:
    dtype = args[exercise.reads].dtype
    if size.numel() == 0:
        return size
    row = size.amax(dim=-1, keepdim=True) if size.dim() else size
    scale = row + OF_THE_TENSOR * size.max()
    relative = RELATIVE[dtype] + SCORE_STEP * case(exercise, args).score_bound
    smallest_step = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    return (relative * scale + smallest_step).expand(size.shape)
