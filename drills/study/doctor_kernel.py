"""The kernel that `doctor` runs, in a worker as if it were a learner's, and compiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def smoke(
    a_ptr,  # [R, C] float32
    b_ptr,  # [C, C] float32
    largest_ptr,  # [R] float32: the largest of each row of a
    product_ptr,  # [R, C] float32: a @ b
    half_ptr,  # [R, C] bfloat16: a / 2
    R: tl.constexpr,
    C: tl.constexpr,
):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    at = rows[:, None] * C + columns[None, :]
    a = tl.load(a_ptr + at)
    b = tl.load(b_ptr + columns[:, None] * C + columns[None, :])
    tl.store(largest_ptr + rows, tl.max(a, axis=1))
    tl.store(product_ptr + at, tl.dot(a, b))
    tl.store(half_ptr + at, (a / 2).to(tl.bfloat16))


def smoked(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The largest of each row of a, a @ b, and a / 2 in bfloat16. a[R, C] and b[C, C] float32; sides a power of two."""
    largest, product, halved = torch.empty(len(a)), torch.empty_like(a), torch.empty(a.shape, dtype=torch.bfloat16)
    smoke[(1,)](a, b, largest, product, halved, *a.shape)
    return largest, product, halved
