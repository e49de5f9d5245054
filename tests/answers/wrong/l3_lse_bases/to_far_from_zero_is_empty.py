"""|lse| above 1e5 counts as empty.

exercise: to_flashinfer
level: edge
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tf_kernel(x, out, H, T, sh, st, BH: tl.constexpr, BT: tl.constexpr):
    a = tl.make_block_ptr(x, (H, T), (sh, st), (tl.program_id(1) * BH, tl.program_id(0) * BT), (BH, BT), (1, 0))
    b = tl.make_block_ptr(out, (T, H), (H, 1), (tl.program_id(0) * BT, tl.program_id(1) * BH), (BT, BH), (1, 0))
    t = tl.trans(tl.load(a, boundary_check=(0, 1)))
    t = tl.where(tl.abs(t) > 1e5, float("-inf"), t * 1.4426950408889634)
    tl.store(b, t, boundary_check=(0, 1))


def to_flashinfer(lse):
    H, T = lse.shape
    out = torch.empty(T, H, dtype=torch.float32, device=lse.device)
    if H and T:
        tf_kernel[(triton.cdiv(T, 32), triton.cdiv(H, 16))](lse, out, H, T, *lse.stride(), BH=16, BT=32)
    return out
