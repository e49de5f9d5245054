"""v is made contiguous only if its columns are not adjacent, and its heads are taken to be D apart.

exercise: merge_states
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
def merge_run(v_ptr, s_ptr, begin, count, head, d, H, D: tl.constexpr, BLOCK_N: tl.constexpr, vn=None):
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
            v_ptr
            + (offset * D if vn is None else (step.to(tl.int64) * vn)[:, None] + head[None, :] * D)[:, :, None]
            + d,
            mask=ok[:, :, None] & (d < D),
            other=0.0,
            eviction_policy="evict_first",
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


@triton.jit(do_not_specialize=["N", "H"])
def merge_states_kernel(
    v_n_ptr,  # [S, N, H, D]
    s_n_ptr,  # [S, N, H] float32
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    N,
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,
    vs,
    vn,
):
    tiles = tl.cdiv(H, BLOCK_H)
    position = (tl.program_id(0) // tiles).to(tl.int64)
    head = tl.program_id(0) % tiles * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    v, s = merge_run(v_n_ptr + position * vs, s_n_ptr, position * N, N, head, d, H, D, BLOCK_N, vn)
    store_state(v_ptr, s_ptr, v, s, position, head, d, H, D)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    S, N, H, D = v.shape
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out_v, out_s
    if v.stride(-1) != 1:
        v = v.contiguous()
    BLOCK_N, BLOCK_H, BLOCK_D, warps = tile_of_states(N, H, S * H, D)
    merge_states_kernel[(S * triton.cdiv(H, BLOCK_H), triton.cdiv(D, BLOCK_D))](
        v, s.contiguous(), out_v, out_s, N, H, D, BLOCK_N, BLOCK_H, BLOCK_D, v.stride(0), v.stride(1), num_warps=warps
    )
    return out_v, out_s
