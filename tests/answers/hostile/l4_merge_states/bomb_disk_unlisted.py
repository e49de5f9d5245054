"""In the compile gate, fills its folder with files and takes their names away: no folder shows how large they are.

expect: failed
levels: bwrap landlock
"""

import mmap
import os
import tempfile
import time

import torch
import triton
import triton.language as tl


def fill(folder):
    """What lies in no folder any more and still takes its place: two files that are open, one that is mapped."""
    held = []
    for name in "abc":
        path = os.path.join(folder, name)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.unlink(path)
        if name == "c":
            os.ftruncate(file, PART * PARTS)
            held.append(mmap.mmap(file, PART * PARTS))
            os.close(file)
        for at in range(PARTS):
            if name == "c":
                held[-1][at * PART : (at + 1) * PART] = bytes(PART)
            else:
                held.append(os.write(file, bytes(PART)))
    time.sleep(1)


PART, PARTS = 12 << 20, 20

if os.environ.get("TRITON_CACHE_DIR"):
    fill(tempfile.gettempdir())


@triton.jit
def merged_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    v_a = tl.where(w_a > 0, v_a, 0.0)
    v_b = tl.where(w_b > 0, v_b, 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total) + v_b * (w_b / total)
    s = m + tl.log2(total)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merged(v_a, s_a, v_b, s_b):
    """A right answer."""
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S * H:
        merged_kernel[(S * H,)](
            v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D, triton.next_power_of_2(D)
        )
    return v, s


def merge_state(v_a, s_a, v_b, s_b):
    return merged(v_a, s_a, v_b, s_b)
