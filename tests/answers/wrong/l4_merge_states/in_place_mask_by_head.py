"""mask[h] is read in place of mask[i].

exercise: merge_state_in_place
level: value
diagnosis: mask_by_head
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
def k_cb(v, s, vo, so, mask, v_new, s_new, rows, H, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    d = tl.arange(0, BD)
    ok = r < rows
    on = tl.load(mask + r % H, mask=ok, other=0) != 0
    okk = ok[:, None] & (d < D)[None, :]
    at = r[:, None] * D + d[None, :]
    a = tl.load(s + r, mask=ok, other=float("-inf"))
    b = tl.load(so + r, mask=ok, other=float("-inf"))
    x = tl.load(v + at, mask=okk, other=0.0)
    y = tl.load(vo + at, mask=okk, other=0.0)
    z, t = merge_two(x, a, y, b)
    tl.store(v_new + at, tl.where(on[:, None], z, x.to(tl.float32)).to(v.dtype.element_ty), mask=okk)
    tl.store(s_new + r, tl.where(on, t, a), mask=ok)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if v.numel() == 0:
        return
    if mask is None:
        mask = torch.ones(S, dtype=torch.bool, device=v.device)
    mask = mask.contiguous().to(torch.int32)
    v_new = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_new = torch.empty((S, H), dtype=torch.float32, device=v.device)
    k_cb[(triton.cdiv(S * H, 4),)](
        v.contiguous(),
        s.contiguous(),
        v_other.contiguous(),
        s_other.contiguous(),
        mask,
        v_new,
        s_new,
        S * H,
        H,
        D,
        4,
        triton.next_power_of_2(D),
    )
    v.copy_(v_new)
    s.copy_(s_new)
