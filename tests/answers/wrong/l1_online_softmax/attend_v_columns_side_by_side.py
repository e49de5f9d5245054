"""The columns of v are taken to lie side by side.

exercise: attend
level: memory
diagnosis: attend_strides_ignored
told: v.stride(1) is 40, and 1 was taken, as if v were contiguous
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lazy_kernel(s_ptr, v_ptr, o_ptr, N, ss0, ss1, sv0, sv1, D: tl.constexpr, C: tl.constexpr, W: tl.constexpr):
    """The reference moves only when the max runs more than 8 ahead of it: exp(8) is harmless in float32."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    ref = float("-inf")
    l = 0.0
    acc = tl.zeros((W,), tl.float32)
    for c in range(0, N, C):
        n = (c + tl.arange(0, C)).to(tl.int64)
        s = tl.load(s_ptr + row * ss0 + n * ss1, mask=n < N, other=float("-inf")).to(tl.float32)
        v = tl.load(v_ptr + n[:, None] * sv0 + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0).to(
            tl.float32
        )
        top = tl.max(s, 0)
        if top > ref + 8.0:
            keep = tl.exp(ref - top)
            l = l * keep
            acc = acc * keep
            ref = top
        p = tl.where(s == float("-inf"), 0.0, tl.exp(s - ref))
        l += tl.sum(p, 0)
        acc += tl.sum(p[:, None] * v, 0)
    tl.store(o_ptr + row * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        lazy_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D, min(block, 32), triton.next_power_of_2(D))
    return o
