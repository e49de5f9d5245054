"""Kernels that Triton refuses for some launches only. Read by test_gate_alike, which launches them in many ways.

All have the same parameters: a and b point to types that may differ, K, M and N are powers of two or not, FLAG is a
flag, mask a pointer or None, step 1 or not.
"""

import triton
import triton.language as tl

HALF = tl.constexpr(32)


@triton.jit
def columns_are_no_power_of_two(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    tl.store(a + tl.arange(0, K), 0.0)


@triton.jit
def tile_is_too_large(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    rows = tl.arange(0, M * 16)
    tl.store(a + rows[:, None] * N + tl.arange(0, N * 256)[None, :], 0.0)


@triton.jit
def square_is_too_large(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    row = tl.arange(0, M * 32)
    tl.store(a + row[:, None] * N + row[None, :], 0.0)


@triton.jit
def product_is_too_narrow_where_there_is_a_flag(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    if FLAG:
        tile = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
        left = tl.load(b + tile)
        tl.store(a + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], tl.dot(left, tl.trans(left)))
    else:
        tl.store(a + tl.arange(0, N), 0.0)


@triton.jit
def product_is_too_narrow(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    left = tl.load(a + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(a + tl.arange(0, M), tl.sum(tl.dot(left, tl.trans(left)), 1))


@triton.jit
def product_of_two_types(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    left = tl.load(a + tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :])
    right = tl.load(b + tl.arange(0, 64)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(a + tl.arange(0, 16), tl.sum(tl.dot(left, right), 1))


@triton.jit
def product_of_sides_that_differ(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    left = tl.zeros((16, M * 16), tl.float16)
    right = tl.zeros((N * 16, 32), tl.float16)
    tl.store(a + tl.arange(0, 16), tl.sum(tl.dot(left, right), 1))


@triton.jit
def product_into_another_tile(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    left = tl.zeros((M * 2, 32), tl.float16)
    acc = tl.zeros((M * 2, N * 4), tl.float32)
    if FLAG:
        acc = tl.dot(left, tl.trans(left), acc)
    tl.store(a + tl.arange(0, M * 2), tl.sum(acc, 1))


@triton.jit
def product_in_a_helper(x, y):
    return tl.dot(x, tl.trans(y), input_precision="ieee")


@triton.jit
def product_of_a_helper_of_some_widths(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    tile = tl.zeros((16, N // 2), b.dtype.element_ty)
    tl.store(a + tl.arange(0, 16), tl.sum(product_in_a_helper(tile, tile), 1))


@triton.jit
def sides_must_be_equal(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    tl.store(a + tl.arange(0, M) + tl.arange(0, N), 0.0)


@triton.jit
def sides_must_differ(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    tl.static_assert(M != N)
    tl.store(a + tl.arange(0, M), 0.0)


@triton.jit
def side_must_be_what_is_written(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    tl.store(a + tl.arange(0, 32)[None, :] + tl.arange(0, M)[:, None] * 0 + tl.zeros((M, N), tl.int32), 0.0)


@triton.jit
def side_must_be_a_constant_of_the_file(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    tl.store(a + tl.arange(0, HALF) + tl.zeros((N,), tl.int32), 0.0)


@triton.jit
def one_value_of_two_is_refused(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    tl.static_assert(K * N != 40 * 32)
    tl.store(a + tl.arange(0, N), 0.0)


@triton.jit
def a_share_of_nothing(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    SHARE: tl.constexpr = M // (K // 40)
    tl.store(a + tl.arange(0, N) * SHARE, 0.0)


@triton.jit
def no_rows_are_left(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    tl.store(a + tl.arange(0, M // N), 0.0)


@triton.jit
def does_not_reshape(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    tile = tl.load(a + tl.arange(0, M)[:, None] + tl.zeros((M, N), tl.int32))
    tl.store(a + tl.arange(0, 512), tl.reshape(tile, (512,)))


@triton.jit
def has_it_in_one_branch(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    if K > 33:
        w = tl.load(a)
    tl.store(a, w)


@triton.jit
def has_it_where_there_is_a_mask(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    if mask is not None:
        w = tl.load(mask)
    if N < 32:
        w = tl.load(a).to(tl.int8)
    tl.store(a, w)


@triton.jit
def one_type_has_no_bits(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    if FLAG:
        tl.store(b, tl.load(b) & 1)


@triton.jit
def does_not_fit_a_byte(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    if mask is not None:
        tl.store(mask, tl.load(mask) + K * 4)


@triton.jit
def steps_are_mixed(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    WIDE: tl.constexpr = step * 2
    tl.store(a + tl.arange(0, WIDE), 0.0)


@triton.jit
def share_of(x, WIDTH, PARTS: tl.constexpr = 4):
    piece = tl.arange(0, WIDTH // PARTS)
    return x + piece, piece


@triton.jit
def helper_cannot_share(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    at, piece = share_of(a, N, PARTS=M)
    tl.store(at, piece.to(tl.float32))


@triton.jit
def turns_float_in_a_loop(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    total = 0
    for i in range(0, step, K):
        if N == 32:
            total += tl.load(a + i).to(tl.float32)
        else:
            total += i
    tl.store(a, total)


@triton.jit
def one_type_has_a_side_of_its_own(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    if b.dtype.element_ty == tl.float32:
        tl.store(a + tl.arange(0, K), 0.0)


@triton.jit
def a_side_is_made_of_a_type_and_a_size(
    a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr
):
    BYTES: tl.constexpr = M * 16 // b.dtype.element_ty.primitive_bitwidth
    tl.store(a + tl.arange(0, BYTES), 0.0)


@triton.jit
def flag_and_size_together(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    if FLAG and N > 16:
        tl.store(a + tl.arange(0, K), 0.0)


@triton.jit
def parts_are_no_power_of_two(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    PARTS: tl.constexpr = (K + M - 1) // M
    tl.store(a + tl.arange(0, PARTS), 0.0)


@triton.constexpr_function
def quotient_of(whole, part):
    return whole // part


@triton.jit
def a_function_makes_the_side(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    SHARE: tl.constexpr = quotient_of(K, M)
    tl.static_assert(SHARE > 0)
    tl.store(a + tl.arange(0, N), 0.0)


@triton.jit
def all_is_well(a, b, mask, step, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, FLAG: tl.constexpr):
    PIECES: tl.constexpr = K // 8
    r = tl.arange(0, M)
    ok = (r // PIECES < K)[:, None] & (tl.arange(0, N) < K)[None, :]
    x = tl.load(b + r[:, None] * K + tl.arange(0, N)[None, :], mask=ok, other=0)
    tl.store(a + r, tl.sum(x.to(tl.float32), axis=1))
