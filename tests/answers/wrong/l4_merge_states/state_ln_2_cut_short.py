"""s is made natural and base 2 again with ln 2 = 0.6931.

exercise: merge_state
level: value
diagnosis: constant_cut_short
"""

import torch
import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931)


@triton.jit
def one_row(va, sa, vb, sb, out, sout, a0, a1, a2, p0, p1, b0, b1, b2, q0, q1, H, D: tl.constexpr, P: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, P)
    x = tl.load(sa + i * p0 + h * p1) * LN2
    y = tl.load(sb + i * q0 + h * q1) * LN2
    if x < y:
        big = y
        small = x
    else:
        big = x
        small = y
    if big == float("-inf"):
        tl.store(out + (i * H + h) * D + c, tl.zeros([P], out.dtype.element_ty), c < D)
        tl.store(sout + i * H + h, float("-inf"))
    else:
        total = big + tl.log(1.0 + tl.exp(small - big))
        wa = tl.exp(x - big)
        wb = tl.exp(y - big)
        z = wa + wb
        acc = tl.zeros([P], tl.float32)
        if wa > 0:
            acc += tl.load(va + i * a0 + h * a1 + c.to(tl.int64) * a2, c < D, other=0).to(tl.float32) * (wa / z)
        if wb > 0:
            acc += tl.load(vb + i * b0 + h * b1 + c.to(tl.int64) * b2, c < D, other=0).to(tl.float32) * (wb / z)
        tl.store(out + (i * H + h) * D + c, acc, c < D)
        tl.store(sout + i * H + h, total / LN2)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty(S, H, D, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(S, H, dtype=torch.float32, device=v_a.device)
    if v.numel():
        one_row[(S, H)](
            v_a,
            s_a,
            v_b,
            s_b,
            v,
            s,
            *v_a.stride(),
            *s_a.stride(),
            *v_b.stride(),
            *s_b.stride(),
            H,
            D,
            triton.next_power_of_2(D),
        )
    return v, s
