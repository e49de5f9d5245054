"""Neither -inf nor an empty part's output is looked after.

exercise: merge_mlo
level: edge
diagnosis: mlo_unguarded
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mlo_kernel(m_ptr, l_ptr, o_n_ptr, o_ptr, N, H, D, BLOCK_D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    for n in range(0, N):
        m = tl.maximum(m, tl.load(m_ptr + n * H + head))
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for n in range(0, N):
        row = n * H + head
        w_n = tl.exp(tl.load(m_ptr + row) - m) * tl.load(l_ptr + row)
        acc += w_n * tl.load(o_n_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
        total += w_n
    tl.store(o_ptr + head * D + d, acc / total, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    out = torch.zeros((H, D), dtype=o.dtype, device=o.device)
    if N > 0:
        mlo_kernel[(H,)](m, l, o, out, N, H, D, triton.next_power_of_2(D))
    return out
