"""Results in half precision are made float16 first: bfloat16 has values that float16 has not.

exercise: merge_pair
level: value
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit(do_not_specialize=["H"])
def merge_pair_kernel(
    m_a_ptr, l_a_ptr,  # [H] float32
    o_a_ptr,  # [H, D]
    m_b_ptr, l_b_ptr,  # [H] float32
    o_b_ptr,  # [H, D]
    m_ptr, l_ptr,  # [H] float32, results
    o_ptr,  # [H, D] result
    H,
    D: tl.constexpr,
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D)
    head_ok = head < H
    ok = head_ok[:, None] & (d < D)[None, :]
    offset = head[:, None] * D + d[None, :]

    m_a = tl.load(m_a_ptr + head, mask=head_ok, other=float("-inf"))
    m_b = tl.load(m_b_ptr + head, mask=head_ok, other=float("-inf"))
    l_a = tl.load(l_a_ptr + head, mask=head_ok, other=0.0)
    l_b = tl.load(l_b_ptr + head, mask=head_ok, other=0.0)
    o_a = tl.load(o_a_ptr + offset, mask=ok, other=0.0).to(tl.float32)
    o_b = tl.load(o_b_ptr + offset, mask=ok, other=0.0).to(tl.float32)

    m = tl.maximum(m_a, m_b)
    shift = no_nan(m)
    w_a = tl.exp(m_a - shift) * l_a  # an empty part: 0 * 0
    w_b = tl.exp(m_b - shift) * l_b
    o_a = tl.where((w_a > 0.0)[:, None], o_a, 0.0)  # 0 * NaN is NaN: the payload of an empty part is dropped
    o_b = tl.where((w_b > 0.0)[:, None], o_b, 0.0)

    l = w_a + w_b
    scale = 1.0 / tl.where(l > 0.0, l, 1.0)
    o = o_a * (w_a * scale)[:, None] + o_b * (w_b * scale)[:, None]
    tl.store(m_ptr + head, m, mask=head_ok)
    tl.store(l_ptr + head, l, mask=head_ok)
    tl.store(o_ptr + offset, o.to(tl.float32 if o_ptr.dtype.element_ty == tl.float32 else tl.float16), mask=ok)


def merge_pair(
    m_a: torch.Tensor, l_a: torch.Tensor, o_a: torch.Tensor, m_b: torch.Tensor, l_b: torch.Tensor, o_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_H = max(1, 1024 // BLOCK_D)
    merge_pair_kernel[(triton.cdiv(H, BLOCK_H),)](
        m_a.contiguous(), l_a.contiguous(), o_a.contiguous(), m_b.contiguous(), l_b.contiguous(), o_b.contiguous(),
        m, l, o, H, D, BLOCK_H, BLOCK_D,
    )  # fmt: skip
    return m, l, o
