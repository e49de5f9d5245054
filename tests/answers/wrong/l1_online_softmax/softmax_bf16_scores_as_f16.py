"""Scores in bfloat16 are made float16, whose range is smaller.

exercise: softmax
level: edge
diagnosis: wrong_value
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
def softmax_kernel(x_ptr, y_ptr, M, N, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, B)
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    for c0 in range(0, N, B):
        ok = (r < M)[:, None] & (c0 + c < N)[None, :]
        x = tl.load(x_ptr + r[:, None].to(tl.int64) * N + c0 + c[None, :], mask=ok, other=float("-inf"))
        if x.dtype == tl.bfloat16:
            x = x.to(tl.float16)
        m, l, _, _ = fold(x.to(tl.float32), m, l)
    rate = 1.0 / tl.maximum(l, 1.0e-30)
    base = tl.maximum(m, -3.0e38)
    for c0 in range(0, N, B):
        ok = (r < M)[:, None] & (c0 + c < N)[None, :]
        at = r[:, None].to(tl.int64) * N + c0 + c[None, :]
        x = tl.load(x_ptr + at, mask=ok, other=float("-inf")).to(tl.float32)
        y = tl.exp2((x - base[:, None]) * LOG2E) * rate[:, None]
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M * N > 0:
        softmax_kernel[(triton.cdiv(M, 16),)](x.contiguous(), y, M, N, R=16, B=min(block, 128))
    return y
