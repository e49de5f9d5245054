"""The running sums are scaled by e^(m_old - m_new), the weights are powers of 2.

exercise: merge_states
level: value
diagnosis: factor_by_e
"""

import torch
import triton
import triton.language as tl


@triton.jit
def many_kernel(v, s, ptr, out, so, N, H, RAGGED: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, P: tl.constexpr):
    h = tl.program_id(1)
    i = tl.program_id(0).to(tl.int64)
    if RAGGED:
        lo = tl.load(ptr + i).to(tl.int64)
        count = (tl.load(ptr + i + 1) - tl.load(ptr + i)).to(tl.int32)
    else:
        lo = i * N
        count = N
    pv = tl.make_block_ptr(v + (lo * H + h) * D, (count, D), (H * D, 1), (0, 0), (BN, P), (1, 0))
    ps = tl.make_block_ptr(s + lo * H + h, (count,), (H,), (0,), (BN,), (0,))
    m = -float("inf")
    l = 0.0
    acc = tl.zeros([P], dtype=tl.float32)
    for n in tl.range(0, count, BN):
        a = tl.load(ps, boundary_check=(0,), padding_option="zero")
        a = tl.where(n + tl.arange(0, BN) < count, a, float("-inf"))
        x = tl.load(pv, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        mn = tl.maximum(m, tl.max(a, 0))
        ref = tl.where(mn == float("-inf"), 0.0, mn)
        w = tl.exp2(a - ref)
        k = tl.exp(m - ref)
        l = l * k + tl.sum(w, 0)
        acc = acc * k + tl.sum(tl.where(w[:, None] > 0, x, 0.0) * w[:, None], 0)
        m = mn
        pv = tl.advance(pv, (BN, 0))
        ps = tl.advance(ps, (BN,))
    safe = tl.where(l == 0, 1.0, l)
    po = tl.make_block_ptr(out + (i * H + h) * D, (D,), (1,), (0,), (P,), (0,))
    tl.store(po, (acc / safe).to(out.dtype.element_ty), boundary_check=(0,))
    tl.store(so + i * H + h, m + tl.log2(safe))


def merge_states(v, s):
    S, N, H, D = v.shape
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    so = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        many_kernel[(S, H)](v.contiguous(), s.contiguous(), None, out, so, N, H, False, D, 8, triton.next_power_of_2(D))
    return out, so
