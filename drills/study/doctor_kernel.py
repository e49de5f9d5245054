"""The kernel that `doctor` runs and compiles. Imported only by `doctor_smoke`."""

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
