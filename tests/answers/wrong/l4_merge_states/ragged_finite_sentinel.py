"""m starts at -1e5.

exercise: variable_length_merge_states
level: edge
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def ragged_kernel(v, s, ptr, vo, so, H, D, vm, vh, vd, sm, sh, ip, COLS: tl.constexpr):
    i = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    c = part * COLS + tl.arange(0, COLS)
    lo = tl.load(ptr + i.to(tl.int64) * ip).to(tl.int64)
    hi = tl.load(ptr + (i.to(tl.int64) + 1) * ip).to(tl.int64)
    m = -100000.0
    total = 0.0
    acc = tl.zeros([COLS], tl.float32)
    for r in range(lo, hi):
        t = tl.load(s + r * sm + h * sh)
        if t > float("-inf"):
            x = tl.load(v + r * vm + h * vh + c * vd, mask=c < D, other=0.0).to(tl.float32)
            new = tl.maximum(m, t)
            f = tl.exp2(m - new)
            w = tl.exp2(t - new)
            total = total * f + w
            acc = acc * f + w * x
            m = new
    if total == 0.0:
        total = 1.0
        m = float("-inf")
    at = i.to(tl.int64) * H + h
    tl.store(vo + at * D + c, (acc / total).to(vo.dtype.element_ty), mask=c < D)
    if part == 0:
        tl.store(so + at, m + tl.log2(total))


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    S = indptr.shape[0] - 1
    vo = torch.empty(S, H, D, dtype=v.dtype, device=v.device)
    so = torch.empty(S, H, dtype=torch.float32, device=v.device)
    if vo.numel():
        ragged_kernel[(S, H, triton.cdiv(D, 64))](
            v, s, indptr, vo, so, H, D, *v.stride(), *s.stride(), indptr.stride(0), COLS=64
        )
    return vo, so
