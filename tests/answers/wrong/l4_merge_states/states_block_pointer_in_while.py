"""A while loop advances a block pointer: the interpreter runs it, Triton's compiler has for loops only for that.

exercise: merge_states
level: compile
diagnosis: compile_error
"""

import torch
import triton
import triton.language as tl


@triton.jit
def run_kernel(v, s, v_out, s_out, N, H, D, STEP: tl.constexpr, WIDE: tl.constexpr):
    """A program merges the N states of one position and head."""
    p = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    begin = p * N
    count = N
    # First read of s: the largest, and the sum of the weights.
    m = tl.full([STEP], float("-inf"), tl.float32)
    total = tl.zeros([STEP], tl.float32)
    for start in range(0, count, STEP):
        n = start + tl.arange(0, STEP)
        x = tl.load(s + (begin + n) * H + head, mask=n < count, other=float("-inf"))
        top = tl.maximum(m, x)
        shift = tl.where(top == float("-inf"), 0.0, top)
        total = total * tl.exp2(m - shift) + tl.exp2(x - shift)
        m = top
    top = tl.max(m, 0)
    shift = tl.where(top == float("-inf"), 0.0, top)
    whole = tl.sum(total * tl.exp2(m - shift), 0)
    whole = tl.where(whole > 0, whole, 1.0)
    out = p * H + head
    if tl.program_id(2) == 0:
        tl.store(s_out + out, top + tl.log2(whole))
    # Second read of s: the weights are final, so nothing is rescaled.
    acc = tl.zeros([WIDE], tl.float32)
    column = tl.program_id(2) * WIDE
    values = tl.make_block_ptr(v + begin * H * D + head * D, (count, D), (H * D, 1), (0, column), (STEP, WIDE), (1, 0))
    start = 0
    while start < count:
        n = start + tl.arange(0, STEP)
        w = tl.exp2(tl.load(s + (begin + n) * H + head, mask=n < count, other=float("-inf")) - shift) / whole
        tile = tl.load(values, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        acc += tl.sum(tl.where((w > 0)[:, None], tile * w[:, None], 0.0), 0)
        values = tl.advance(values, (STEP, 0))
        start += STEP
    d = column + tl.arange(0, WIDE)
    tl.store(v_out + out * D + d, acc.to(v_out.dtype.element_ty), mask=d < D)


def merge_states(v, s):
    S, N, H, D = v.shape
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        wide = min(128, triton.next_power_of_2(D))
        grid = (S, H, triton.cdiv(D, wide))
        run_kernel[grid](v.contiguous(), s.contiguous(), v_out, s_out, N, H, D, STEP=16, WIDE=wide)
    return v_out, s_out
