"""Tensors gigabytes wide cost no memory that nobody touches."""

import torch

from drills import reserve


def committed():
    """Bytes that all processes may ask for."""
    with open("/proc/meminfo") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("Committed_AS"))


def test_what_is_reserved_is_not_counted_before_it_is_touched():
    before = committed()
    held = reserve.empty(3 << 30, torch.float32)
    assert committed() - before < 4 << 30  # of 12: others may ask for some meanwhile
    assert held.shape == (3 << 30,) and held.dtype == torch.float32
    held[-1] = 5.0
    assert held[-1] == 5.0 and held[0] == 0.0


def test_small_ones_are_ordinary():
    assert reserve.empty(5, torch.bfloat16).shape == (5,) and reserve.empty(0, torch.bool).numel() == 0
