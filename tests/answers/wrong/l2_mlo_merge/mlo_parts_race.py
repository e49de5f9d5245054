"""A program a part, and all of them store to the one row of the result.

exercise: merge_mlo
level: memory
diagnosis: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mlo_kernel(m_ptr, l_ptr, o_n_ptr, o_ptr, N, H, D, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    mine = tl.program_id(1)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    m_n = tl.load(m_ptr + n * H + head, mask=n < N, other=float("-inf"))
    l_n = tl.load(l_ptr + n * H + head, mask=n < N, other=0.0)
    m = tl.max(m_n, axis=0)
    w = tl.exp(m_n - tl.where(m == float("-inf"), 0.0, m)) * l_n
    total = tl.sum(w, axis=0)
    share = tl.sum(tl.where(n == mine, w, 0.0), axis=0) / tl.where(total > 0, total, 1.0)
    o_n = tl.load(o_n_ptr + (mine * H + head) * D + d, mask=(d < D) & (share > 0), other=0.0).to(tl.float32)
    so_far = tl.load(o_ptr + head * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(o_ptr + head * D + d, so_far + share * o_n, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    out = torch.zeros((H, D), dtype=o.dtype, device=o.device)
    if N > 0:
        mlo_kernel[(H, N)](m, l, o, out, N, H, D, triton.next_power_of_2(N), triton.next_power_of_2(D))
    return out
