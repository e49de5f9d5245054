"""An int64 indptr is read as int32.

exercise: variable_length_merge_states
level: edge
diagnosis: indptr_read_as_int32
"""

import torch
import triton
import triton.language as tl


@triton.jit
def k_cc(v, s, ptr, vo, so, H, D: tl.constexpr, C: tl.constexpr, CHUNKS: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(1)
    h = tl.program_id(0)
    b = tl.load(ptr + i)
    e = tl.load(ptr + i + 1)
    n_ = tl.arange(0, BN)
    m = tl.full([], float("-inf"), tl.float32)
    for n in range(b, e, BN):
        m = tl.maximum(m, tl.max(tl.load(s + (n + n_).to(tl.int64) * H + h, mask=n + n_ < e, other=float("-inf"))))
    z = tl.where(m == float("-inf"), 0.0, m)
    for c in tl.static_range(CHUNKS):
        d = c * C + tl.arange(0, C)
        acc = tl.zeros([C], tl.float32)
        t = tl.full([], 0.0, tl.float32)
        for n in range(b, e, BN):
            row = (n + n_).to(tl.int64) * H + h
            w = tl.exp2(tl.load(s + row, mask=n + n_ < e, other=float("-inf")) - z)
            y = tl.load(v + row[:, None] * D + d, mask=(w > 0)[:, None] & (d < D), other=0.0).to(tl.float32)
            acc += tl.sum(y * w[:, None], 0)
            t += tl.sum(w)
        safe = tl.where(t > 0, t, 1.0)
        o = i.to(tl.int64) * H + h
        tl.store(vo + o * D + d, acc / safe, mask=d < D)
        if c == 0:
            tl.store(so + o, m + tl.log2(safe))


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    S = indptr.shape[0] - 1
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=v.device)
    C = min(32, triton.next_power_of_2(D))
    if S:
        k_cc[(H, S)](
            v.contiguous(),
            s.contiguous(),
            indptr.contiguous().view(torch.int32),
            out,
            lse,
            H,
            D,
            C,
            triton.cdiv(D, C),
            4,
            num_warps=1,
        )
    return out, lse
