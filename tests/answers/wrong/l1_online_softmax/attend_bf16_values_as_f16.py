"""Values in bfloat16 are made float16, whose range is smaller.

exercise: attend
level: edge
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def fold(x, m, l):
    """A tile x[R, B] into the running m[R] and l[R]. Also returns the weights [R, B] and the old sums' factor [R]."""
    top = tl.maximum(m, tl.max(x, 1))
    base = tl.maximum(top, -3.0e38)  # finite: a row with no score gives exp2(-inf)
    keep = tl.exp2((m - base) * LOG2E)
    w = tl.exp2((x - base[:, None]) * LOG2E)
    return top, l * keep + tl.sum(w, 1), w, keep


@triton.jit
def attend_kernel(s_ptr, v_ptr, o_ptr, M, N, D, R: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    n = tl.arange(0, B)
    c = tl.program_id(1) * C + tl.arange(0, C)
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    o = tl.zeros([R, C], tl.float32)
    for n0 in range(0, N, B):
        inside = n0 + n < N
        s = tl.load(
            s_ptr + r[:, None].to(tl.int64) * N + n0 + n[None, :],
            mask=(r < M)[:, None] & inside[None, :],
            other=float("-inf"),
        )
        v = tl.load(v_ptr + (n0 + n)[:, None] * D + c[None, :], mask=inside[:, None] & (c < D)[None, :], other=0.0)
        m, l, w, keep = fold(s.to(tl.float32), m, l)
        if v.dtype == tl.bfloat16:
            v = v.to(tl.float16)
        o = o * keep[:, None] + tl.dot(w.to(v.dtype), v, input_precision="ieee")
    o = o / tl.maximum(l, 1.0e-30)[:, None]
    tl.store(
        o_ptr + r[:, None] * D + c[None, :], o.to(o_ptr.dtype.element_ty), mask=(r < M)[:, None] & (c < D)[None, :]
    )


def attend(scores, v, block=64):
    (M, N), D = scores.shape, v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M > 0:
        grid = (triton.cdiv(M, 16), triton.cdiv(D, 64))
        attend_kernel[grid](scores.contiguous(), v.contiguous(), o, M, N, D, R=16, B=min(64, max(16, block)), C=64)
    return o
