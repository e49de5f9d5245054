"""An indptr of int64 is read as if it were contiguous.

exercise: variable_length_merge_states
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


def tile_of_states(N: int, H: int, rows: int, D: int) -> tuple[int, int, int, int]:
    columns = triton.next_power_of_2(D)
    if N <= 8:
        states, elements = (triton.next_power_of_2(max(N, 1)), 1024) if rows < 4096 else (1, 512)
        return states, max(1, min(triton.next_power_of_2(H), elements // (states * columns))), columns, 1
    heads = max(1, min(triton.next_power_of_2(H), 128 // columns))
    elements, warps = (1024, 1) if N < 32 else (4096, 1) if rows >= 1024 else (16384, 2)
    if rows < 128:
        columns, warps = min(columns, 64), 8
    elif N >= 32 and rows < 1024:
        heads = max(1, min(triton.next_power_of_2(H), 64 // columns))
        columns, elements, warps = max(min(columns, 64), columns // 2), 8192, 1
    states = max(2, elements // (heads * columns))
    return min(states, triton.next_power_of_2(N)), heads, columns, warps


@triton.jit
def merge_run(v_ptr, s_ptr, begin, count, head, d, H, D: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.full(head.shape, float("-inf"), tl.float32)
    total = tl.zeros(head.shape, tl.float32)
    v = tl.zeros((head.shape[0], d.shape[0]), tl.float32)
    # Few states in a step or many of them: the next steps' loads need not wait for this one's sum.
    UNROLL: tl.constexpr = 4 if BLOCK_N == 1 else 2 if BLOCK_N >= 32 else 1
    for n in tl.range(0, count, BLOCK_N, loop_unroll_factor=UNROLL):
        step = n + tl.arange(0, BLOCK_N)
        ok = (step < count)[:, None] & (head < H)[None, :]  # [BLOCK_N, BLOCK_H]
        offset = (begin + step)[:, None] * H + head[None, :]
        s_n = tl.load(s_ptr + offset, mask=ok, other=float("-inf"))  # padding is empty: it weighs 0
        v_n = tl.load(  # [BLOCK_N, BLOCK_H, BLOCK_D]; nobody reads it again, so it is the first to leave the cache
            v_ptr + offset[:, :, None] * D + d, mask=ok[:, :, None] & (d < D), other=0.0, eviction_policy="evict_first"
        )

        m_new = tl.maximum(m, tl.max(s_n, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
        w = tl.exp2(s_n - shift)
        keep = tl.exp2(m - shift)
        v_n = tl.where(w[:, :, None] > 0, v_n.to(tl.float32), 0.0)  # 0 * NaN is NaN
        v = v * keep[:, None] + tl.sum(v_n * w[:, :, None], axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    total = tl.where(m == float("-inf"), 1.0, total)
    return v / total[:, None], m + tl.log2(total)


@triton.jit
def store_state(v_ptr, s_ptr, v, s, position, head, d, H, D: tl.constexpr):
    row = position * H + head
    tl.store(v_ptr + row[:, None] * D + d, v.to(v_ptr.dtype.element_ty), mask=(head < H)[:, None] & (d < D))
    tl.store(s_ptr + row, s, mask=(head < H) & (tl.program_id(1) == 0))


@triton.jit(do_not_specialize=["H"])
def variable_length_kernel(
    v_m_ptr,  # [M, H, D]
    s_m_ptr,  # [M, H] float32
    indptr_ptr,  # [S + 1] int32 or int64
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,  # columns a program, a power of two
):
    tiles = tl.cdiv(H, BLOCK_H)
    position = (tl.program_id(0) // tiles).to(tl.int64)
    head = tl.program_id(0) % tiles * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    begin = tl.load(indptr_ptr + position).to(tl.int64)
    count = tl.load(indptr_ptr + position + 1).to(tl.int64) - begin
    v, s = merge_run(v_m_ptr, s_m_ptr, begin, count.to(tl.int32), head, d, H, D, BLOCK_N)
    store_state(v_ptr, s_ptr, v, s, position, head, d, H, D)


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    H, D = v.shape[1:]
    S = indptr.shape[0] - 1
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out_v, out_s
    BLOCK_N, BLOCK_H, BLOCK_D, warps = tile_of_states(v.shape[0] // S, H, S * H, D)
    variable_length_kernel[(S * triton.cdiv(H, BLOCK_H), triton.cdiv(D, BLOCK_D))](
        v.contiguous(), s.contiguous(), indptr if indptr.dtype == torch.int64 else indptr.contiguous(), out_v, out_s,
        H, D, BLOCK_N, BLOCK_H, BLOCK_D, num_warps=warps,
    )  # fmt: skip
    return out_v, out_s
