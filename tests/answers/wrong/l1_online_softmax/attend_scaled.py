"""The scores are divided by the square root of D once more.

exercise: attend
level: value
diagnosis: attend_scaled
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scalar_kernel(s_ptr, v_ptr, o_ptr, N, ss0, ss1, sv0, sv1, D: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    acc = tl.zeros((W,), tl.float32)
    for n in range(N):
        wide = tl.cast(n, tl.int64)
        s = tl.load(s_ptr + row * ss0 + wide * ss1).to(tl.float32) / tl.sqrt(D * 1.0)
        v = tl.load(v_ptr + wide * sv0 + d.to(tl.int64) * sv1, mask=d < D, other=0.0).to(tl.float32)
        if s > m:
            keep = tl.exp(m - s)
            acc = acc * keep + v
            l = l * keep + 1.0
            m = s
        elif s > float("-inf"):
            p = tl.exp(s - m)
            acc += p * v
            l += p
    tl.store(o_ptr + row * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        scalar_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D, triton.next_power_of_2(D), num_warps=1)
    return o
