"""The weights are tl.sigmoid of the difference of s, which is of base e; s itself is merged rightly.

exercise: merge_state
level: value
diagnosis: exp_for_exp2
twins: state_exp_for_exp2
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(va, sa, vb, sb, out, so, rows, D: tl.constexpr, R: tl.constexpr, P: tl.constexpr):
    r = (tl.program_id(0).to(tl.int64) * R + tl.arange(0, R))[:, None]
    c = tl.arange(0, P)[None, :]
    ok = (r < rows) & (c < D)
    a = tl.load(sa + r, mask=r < rows, other=float("-inf"))
    b = tl.load(sb + r, mask=r < rows, other=float("-inf"))
    none = (a == float("-inf")) & (b == float("-inf"))
    delta = tl.where(none, 0.0, b - a)
    wb = tl.sigmoid(delta)
    wa = tl.sigmoid(-delta)
    wa = tl.where(a == float("-inf"), 0.0, wa)
    wb = tl.where(b == float("-inf"), 0.0, wb)
    x = tl.load(va + r * D + c, mask=ok & (wa > 0), other=0.0).to(tl.float32)
    y = tl.load(vb + r * D + c, mask=ok & (wb > 0), other=0.0).to(tl.float32)
    tl.store(out + r * D + c, wa * x + wb * y, mask=ok)
    tl.store(
        so + r, tl.maximum(a, b) + tl.log2(1.0 + tl.exp2(-tl.abs(delta))) * tl.where(none, 0.0, 1.0), mask=r < rows
    )


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    out = torch.empty_like(v_a, memory_format=torch.contiguous_format)
    so = torch.empty_like(s_a, memory_format=torch.contiguous_format)
    P = triton.next_power_of_2(D)
    R = triton.cdiv(256, P)
    if S:
        sigmoid_kernel[(triton.cdiv(S * H, R),)](
            v_a.reshape(-1, D).contiguous(),
            s_a.reshape(-1).contiguous(),
            v_b.contiguous(),
            s_b.contiguous(),
            out,
            so,
            S * H,
            D,
            R,
            P,
        )
    return out, so
