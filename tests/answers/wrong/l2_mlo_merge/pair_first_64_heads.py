"""m and l of the first 64 heads only: one program of 64 lanes.

exercise: merge_pair
level: memory
diagnosis: unwritten
"""

import torch
import triton
import triton.language as tl


@triton.jit
def ml_kernel(ma, la, mb, lb, m, l, H, s0, s1, s2, s3, B: tl.constexpr):
    h = tl.arange(0, B) + tl.program_id(0) * B
    ok = h < H
    a = tl.load(ma + h * s0, ok, float("-inf"))
    b = tl.load(mb + h * s2, ok, float("-inf"))
    top = tl.maximum(a, b)
    base = tl.where(top == float("-inf"), 0.0, top)
    tl.store(m + h, top, ok)
    tl.store(
        l + h, tl.load(la + h * s1, ok, 0.0) * tl.exp(a - base) + tl.load(lb + h * s3, ok, 0.0) * tl.exp(b - base), ok
    )


@triton.jit
def o_kernel(ma, la, oa, mb, lb, ob, m, l, o, s0, s1, s2, s3, oah, oad, obh, obd, D, B: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * B + tl.arange(0, B)
    top = tl.load(m + h)
    total = tl.load(l + h)
    if total > 0:
        a = tl.load(la + h * s1) * tl.exp(tl.load(ma + h * s0) - top) / total
        b = tl.load(lb + h * s3) * tl.exp(tl.load(mb + h * s2) - top) / total
    else:
        a = 0.0
        b = 0.0
    x = tl.load(oa + h * oah + c * oad, (c < D) & (a > 0), 0.0).to(tl.float32)
    y = tl.load(ob + h * obh + c * obd, (c < D) & (b > 0), 0.0).to(tl.float32)
    tl.store(o + h * D + c, (a * x + b * y).to(o.dtype.element_ty), c < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty(H, D, dtype=o_a.dtype, device=o_a.device)
    st = (m_a.stride(0), l_a.stride(0), m_b.stride(0), l_b.stride(0))
    if H:
        ml_kernel[(1,)](m_a, l_a, m_b, l_b, m, l, H, *st, 64)
        o_kernel[(H, triton.cdiv(D, 32))](
            m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, *st, *o_a.stride(), *o_b.stride(), D, 32
        )
    return m, l, o
