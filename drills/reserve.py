"""Memory for tensors whose elements lie gigabytes apart: address space that nobody has to have.

A plain allocation of 12 GiB is refused on a laptop with 8, and while it is held a fork may be, although a few pages of
it are ever touched. Memory mapped without reservation is counted when it is touched.
"""

from __future__ import annotations

import mmap
import sys

import torch

LARGE = 1 << 28
"""Bytes from which on memory is mapped without reservation."""

NORESERVE = 0x4000
"""Linux's MAP_NORESERVE, on every processor that torch and Triton run on; Python names it from 3.13 on."""


def empty(elements: int, dtype: torch.dtype, device: str | torch.device = "cpu") -> torch.Tensor:
    """A tensor of so many elements; what it holds is undefined. On a GPU it is torch's own."""
    size = elements * dtype.itemsize
    if size < LARGE or torch.device(device).type != "cpu" or not sys.platform.startswith("linux"):
        return torch.empty(elements, dtype=dtype, device=device)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    return torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=dtype)
