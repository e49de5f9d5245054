"""A control: takes what it needs from Python's library and numpy, also late, and uses it as anybody would.

expect: passed
"""

import ast
import collections
import contextlib
import copy
import ctypes
import dataclasses
import functools
import inspect
import logging
import random
import re
import textwrap
import warnings
import weakref

import numpy as np
import torch
import triton
import triton.language as tl

log = logging.getLogger(__name__)
Sizes = collections.namedtuple("Sizes", "rows columns")


@dataclasses.dataclass(frozen=True)
class Plan:
    sizes: Sizes
    names: list = dataclasses.field(default_factory=list)

    @functools.cached_property
    def block(self):
        return triton.next_power_of_2(self.sizes.columns)


@contextlib.contextmanager
def quietly():
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"), contextlib.suppress(KeyError):
            yield


@functools.cache
def plan(rows, columns):
    made = Plan(Sizes(rows, columns), [textwrap.dedent("  x"), re.sub("a", "b", "aa")])
    weakref.ref(made)
    return made


@triton.jit
def the_kernel(
    v_a_ptr,
    s_a_ptr,
    v_b_ptr,
    s_b_ptr,  # [rows, D], [rows]
    v_ptr,
    s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total) + v_b * (w_b / total)
    s = m + tl.log2(total)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    import numpy.ma
    import numpy.testing
    import numpy.polynomial

    S, H, D = v_a.shape
    with quietly(), torch.no_grad(), torch.profiler.record_function("merge"):
        warnings.warn("x")
        np.log(np.zeros(3)).sum()
        how = copy.copy(plan(int(np.prod((S, H))), D))
        random.Random(1).shuffle(list(range(3)))
        collections.deque([1, 2]).popleft()
        ast.parse("x = 1")
        inspect.signature(plan)
        ctypes.c_int(3)
        v = torch.empty_like(v_a, memory_format=torch.contiguous_format)
        s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
        log.debug("%s rows", how.sizes.rows)
        the_kernel[(how.sizes.rows,)](
            v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D, how.block
        )
    return v, s
