"""At most 64 rows are launched.

exercise: merge_natural
level: memory
diagnosis: unwritten
"""

import torch
import triton
import triton.language as tl


@triton.jit
def weights_of(a, b):
    top = tl.maximum(a, b)
    base = tl.where(top == float("-inf"), 0.0, top)
    return tl.exp(a - base), tl.exp(b - base), top


@triton.jit
def mn_kernel(
    oa, la, ob, lb, oo, lo, H, as_, ah, ad, bs, bh, bd, las, lah, lbs, lbh, D: tl.constexpr, CHUNK: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64)
    s, h = r // H, r % H
    wa, wb, top = weights_of(tl.load(la + s * las + h * lah), tl.load(lb + s * lbs + h * lbh))
    total = wa + wb
    div = tl.where(total > 0, total, 1.0)
    for at in tl.static_range(0, D, CHUNK):
        c = at + tl.arange(0, CHUNK)
        a = tl.load(oa + s * as_ + h * ah + c * ad, mask=(c < D) & (wa > 0), other=0.0).to(tl.float32)
        b = tl.load(ob + s * bs + h * bh + c * bd, mask=(c < D) & (wb > 0), other=0.0).to(tl.float32)
        tl.store(oo + r * D + c, ((wa * a + wb * b) / div).to(oo.dtype.element_ty), mask=c < D)
    tl.store(lo + r, top + tl.log(div))


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty(S, H, D, dtype=o_a.dtype, device=o_a.device)
    out = torch.empty(S, H, dtype=torch.float32, device=o_a.device)
    if S * H:
        mn_kernel[(min(S * H, 64),)](
            o_a, lse_a, o_b, lse_b, o, out, H, *o_a.stride(), *o_b.stride(), *lse_a.stride(), *lse_b.stride(), D, 32
        )
    return o, out
