"""The running state starts with s = 0, not -inf.

exercise: variable_length_merge_states
level: value
diagnosis: starts_at_zero
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_two(v_a, s_a, v_b, s_b):
    """Merges v_a[R, D], s_a[R] with v_b, s_b in float32. The larger weight is 2^0 = 1, so nothing overflows."""
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    v_a = tl.where(w_a[:, None] > 0, v_a.to(tl.float32), 0.0)  # 0 * NaN is NaN, so a payload of weight 0 is dropped
    v_b = tl.where(w_b[:, None] > 0, v_b.to(tl.float32), 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total)[:, None] + v_b * (w_b / total)[:, None]
    return v, m + tl.log2(total)


@triton.jit
def k_seq(v, s, ptr, vo, so, S, H, D: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    h = tl.arange(0, BH)
    d = tl.arange(0, BD)
    okh = h < H
    ok = okh[:, None] & (d < D)[None, :]
    begin = tl.load(ptr).to(tl.int64)
    for i in range(S):
        end = tl.load(ptr + i + 1).to(tl.int64)
        lse = tl.zeros([BH], tl.float32)
        acc = tl.zeros([BH, BD], tl.float32)
        row = begin
        while row < end:
            x = tl.load(s + row * H + h, mask=okh, other=float("-inf"))
            y = tl.load(v + (row * H + h)[:, None] * D + d[None, :], mask=ok, other=0.0)
            acc, lse = merge_two(acc, lse, y, x)
            row += 1
        o = i * H + h
        tl.store(vo + o[:, None] * D + d[None, :], acc, mask=ok)
        tl.store(so + o, lse, mask=okh)
        begin = end


def variable_length_merge_states(v, s, indptr):
    S = indptr.numel() - 1
    M, H, D = v.shape
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        k_seq[(1,)](
            v.contiguous(),
            s.contiguous(),
            indptr.contiguous(),
            out,
            lse,
            S,
            H,
            D,
            triton.next_power_of_2(H),
            triton.next_power_of_2(D),
        )
    return out, lse
