"""A tile of heads has one running max, that of all its heads.

exercise: merge_mlo
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mlo_kernel(
    m_ptr,  # [N, H]
    l_ptr,  # [N, H]
    o_n_ptr,  # [N, H, D]
    o_ptr,  # [H, D]
    N,
    H,
    D,
    BLOCK_N: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    total = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        row = n[:, None] * H + head[None, :]
        ok = (n < N)[:, None] & (head < H)[None, :]
        m_n = tl.load(m_ptr + row, mask=ok, other=float("-inf"))
        l_n = tl.load(l_ptr + row, mask=ok, other=0.0)
        m_new = tl.maximum(m, tl.max(m_n))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(m_n - shift) * l_n
        o_n = tl.load(
            o_n_ptr + row[:, :, None] * D + d[None, None, :],
            mask=(w > 0)[:, :, None] & (d < D)[None, None, :],
            other=0.0,
        )
        acc = acc * keep + tl.sum(w[:, :, None] * o_n.to(tl.float32), axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    o = acc / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(o_ptr + head[:, None] * D + d[None, :], o, mask=(head < H)[:, None] & (d < D)[None, :])


def merge_mlo(m, l, o):
    N, H, D = o.shape
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_N = 4
    BLOCK_H = min(8, triton.next_power_of_2(H))
    mlo_kernel[(triton.cdiv(H, BLOCK_H),)](m, l, o, out, N, H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    return out
