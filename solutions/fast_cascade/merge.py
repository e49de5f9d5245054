"""The merge of the states that the launches before it left in a workspace."""

import math

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from solutions.fast_cascade.sizes import launch_options, overlap, results


@triton.jit(do_not_specialize=["rows", "N"])
def merge_states_kernel(
    v,  # [B, N, Hq, D] float32
    s,  # [B, N, Hq] float32
    v_out,  # [B, Hq, D]
    s_out,  # [B, Hq] float32
    rows, N,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
    OVERLAP: tl.constexpr,  # starts before the launch before it is over
):  # fmt: skip
    """A row of the tile is a piece of BLOCK_D columns: one thread's, which adds up BLOCK_N states asked for at once.

    HEADS is a constant, so that a row's states are at distances that stand in the instructions. An empty state needs no
    care: the kernels that wrote it left zeros.
    """
    PIECES: tl.constexpr = D // BLOCK_D
    WHOLE: tl.constexpr = BLOCK_R // PIECES
    r = tl.arange(0, BLOCK_R)
    row = tl.program_id(0) * WHOLE + r // PIECES
    live = (row < rows) & (r < WHOLE * PIECES)
    cols = (r % PIECES * BLOCK_D)[:, None] + tl.arange(0, BLOCK_D)[None, :]
    state = (row // HEADS).to(tl.int64) * N * HEADS + row % HEADS

    m = tl.full([BLOCK_R], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    acc = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    if OVERLAP:
        gdc_wait()
    for start in range(0, N, BLOCK_N):
        # Volatile, since the assembler would put off some until others have been used: they wait together now.
        at_v = v + (state * D)[:, None] + cols
        at_s = s + state
        values = ()
        sizes = ()
        for n in tl.static_range(BLOCK_N):
            exists = (live & (start + n < N))[:, None]
            values = values + (tl.load(at_v + n * HEADS * D, mask=exists, other=0.0, volatile=True),)
        for n in tl.static_range(BLOCK_N):
            exists = live & (start + n < N)
            sizes = sizes + (tl.load(at_s + n * HEADS, mask=exists, other=float("-inf"), volatile=True),)
        m_new = m
        for n in tl.static_range(BLOCK_N):
            m_new = tl.maximum(m_new, sizes[n])
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        rescale = tl.exp2(m - shift)
        total *= rescale
        acc *= rescale[:, None]
        for n in tl.static_range(BLOCK_N):
            weight = tl.exp2(sizes[n] - shift)
            acc += values[n] * weight[:, None]
            total += weight
        m = m_new
        state += BLOCK_N * HEADS
    total = tl.where(m == float("-inf"), 1.0, total)
    result = (acc * (1.0 / total)[:, None]).to(v_out.dtype.element_ty)
    tl.store(v_out + row.to(tl.int64)[:, None] * D + cols, result, mask=live[:, None])
    tl.store(s_out + row, m + tl.log2(total), mask=live & (r % PIECES == 0))


def merge_states(v, s, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge v[B, N, Hq, D] float32 with s[B, N, Hq] into (v[B, Hq, D] in `dtype`, s[B, Hq] float32).

    A thread has 16 bytes of a row. Of few rows a program has one, of many four: so many programs would take time to
    start. At most 10 states are added up at once: with more, the programs need registers for two rounds.
    """
    batch, parts, heads, dim = v.shape
    v_out, s_out = results(v, dtype)
    block_d = math.gcd(dim, 4)
    block_n = triton.cdiv(max(1, parts), max(1, triton.cdiv(parts, 10)))
    block_r = triton.next_power_of_2(dim // block_d) * (1 if batch * heads < 2048 else 4)
    beside = overlap(v) and parts > 0
    if batch:
        merge_states_kernel[(triton.cdiv(batch * heads, block_r * block_d // dim),)](
            v, s, v_out, s_out, batch * heads, parts, heads, dim, block_n, block_r, block_d,
            num_warps=max(1, block_r // 32), OVERLAP=beside, **launch_options(beside),
        )  # fmt: skip
    return v_out, s_out
