"""o is made contiguous only if l is not.

exercise: merge_mlo
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit(do_not_specialize=["N", "H"])
def merge_mlo_kernel(
    m_n_ptr,  # [N, H] float32
    l_n_ptr,  # [N, H] float32
    o_n_ptr,  # [N, H, D]
    o_ptr,  # [H, D] result
    N,
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # parts a step
    BLOCK_D: tl.constexpr,  # columns a program
):
    head = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    m = float("-inf")
    total = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        row = n * H + head  # [N, H]: part n of this head
        m_n = tl.load(m_n_ptr + row, mask=n < N, other=float("-inf"))  # padding is an empty part
        l_n = tl.load(l_n_ptr + row, mask=n < N, other=0.0)
        o_n = tl.load(
            o_n_ptr + row[:, None] * D + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0
        )  # [BLOCK_N, BLOCK_D]

        m_new = tl.maximum(m, tl.max(m_n, axis=0))
        shift = no_nan(m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(m_n - shift) * l_n
        o_n = tl.where((w > 0.0)[:, None], o_n.to(tl.float32), 0.0)  # 0 * NaN is NaN: drop an empty part's payload
        o = o * keep + tl.sum(w[:, None] * o_n, axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    o = o / tl.where(total > 0.0, total, 1.0)
    tl.store(o_ptr + head * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def merge_mlo(m: torch.Tensor, l: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    BLOCK_D = min(32, triton.next_power_of_2(D))  # heads are few: share each one's columns out to several programs
    BLOCK_N = min(64, triton.next_power_of_2(max(N, 1)))
    merge_mlo_kernel[(H, triton.cdiv(D, BLOCK_D))](
        m.contiguous(), l.contiguous(), (o if l.is_contiguous() else o.contiguous()), out, N, H, D, BLOCK_N, BLOCK_D
    )
    return out
