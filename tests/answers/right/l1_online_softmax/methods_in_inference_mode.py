"""Methods of tl.tensor, kernels as static methods, torch.inference_mode, keyword launches, debug asserts."""

import enum

import torch
import triton
import triton.language as tl


class Lanes(enum.IntEnum):
    FEW = 16
    MANY = 128


@triton.jit
def ref(m):
    return tl.where(m == float("-inf"), 0.0, m)


class Kernels:
    @staticmethod
    @triton.jit(debug=True)
    def stats(x_ptr, out_ptr, M, N, by_row, by_col, BLOCK: tl.constexpr = 64, GROUP: tl.constexpr = 2):
        tl.static_assert(BLOCK % GROUP == 0)
        row = tl.program_id(0).to(tl.int64)
        tl.device_assert(row < M, "a program too many")
        m = tl.full([BLOCK // GROUP], float("-inf"), tl.float32)
        l = tl.full([BLOCK // GROUP], 0.0, tl.float32)
        for first in tl.range(0, N, BLOCK, loop_unroll_factor=2):
            col = first + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * by_row + col.to(tl.int64) * by_col, mask=col < N, other=float("-inf")).to(tl.float32)
            pairs = x.reshape(BLOCK // GROUP, GROUP)
            left, right = pairs.split()
            new = tl.maximum(m, tl.maximum(left, right))
            shift = tl.where(new == float("-inf"), 0.0, new)
            l = l * (m - shift).exp() + (left - shift).exp() + (right - shift).exp()
            m = new
        top = m.max(0)
        total = (l * (m - tl.where(top == float("-inf"), 0.0, top)).exp()).sum(0)
        tl.store(out_ptr + row, top)
        tl.store(out_ptr + M + row, total)

    @staticmethod
    @triton.jit
    def softmax(x_ptr, y_ptr, N, x_row, x_col, y_row, WIDE: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        col = tl.arange(0, WIDE)
        x = tl.load(x_ptr + row * x_row + col.to(tl.int64) * x_col, col < N, float("-inf")).to(tl.float32)[None, :]
        m = x.max(axis=1, keep_dims=True)
        e = (x - ref(m)).exp()
        total = e.sum(axis=1, keep_dims=True)
        y = (e / tl.where(total == 0, 1.0, total)).reshape((WIDE,))
        tl.store(y_ptr + row * y_row + col, y.to(y_ptr.dtype.element_ty, fp_downcast_rounding=None), col < N)

    @staticmethod
    @triton.jit
    def attend(ptrs, sizes, by, BLOCK: tl.constexpr, WIDE: tl.constexpr):
        """ptrs: (scores, v, o); sizes: (N, D); by: (scores' two strides, v's two strides)."""
        scores, v, o = ptrs
        N, D = sizes
        row = tl.program_id(0).to(tl.int64)
        d = tl.arange(0, WIDE)
        m = tl.full([1], float("-inf"), tl.float32)
        l = tl.full([1], 0.0, tl.float32)
        acc = tl.zeros([WIDE], tl.float32)
        for first in range(0, N, BLOCK):
            n = first + tl.arange(0, BLOCK)
            s = tl.load(scores + row * by[0] + n.to(tl.int64) * by[1], mask=n < N, other=float("-inf")).to(tl.float32)
            u = tl.load(
                v + n.to(tl.int64)[:, None] * by[2] + d[None, :] * by[3],
                mask=(n < N)[:, None] & (d < D)[None, :],
                other=0.0,
            )
            new = tl.maximum(m, s.max(0, keep_dims=True))
            shift = tl.where(new == float("-inf"), 0.0, new)
            w = (s - shift).exp()
            keep = (m - shift).exp()
            acc = acc * keep + (u.to(tl.float32) * w.expand_dims(1)).sum(0)
            l = l * keep + w.sum(0, keep_dims=True)
            m = new
        acc = acc / tl.where(l == 0, 1.0, l)
        tl.store(o + row * D + d, acc.to(o.dtype.element_ty), mask=d < D)


@torch.inference_mode()
def softmax_stats(x: torch.Tensor, block: int = 1024):
    M, N = x.shape
    out = torch.empty(2 * M, dtype=torch.float32, device=x.device)
    if M:
        Kernels.stats[(M,)](x_ptr=x, out_ptr=out, M=M, N=N, by_row=x.stride(0), by_col=x.stride(1), num_warps=1)
    return out.split(M) if M else (out, out.clone())


@torch.no_grad()
def softmax(x: torch.Tensor, block: int = 1024):
    rows, columns = x.shape
    y = torch.empty_like(x.contiguous() if x.dim() == 1 else x, memory_format=torch.contiguous_format)
    if rows * columns:
        wide = triton.next_power_of_2(columns)
        Kernels.softmax[(rows,)](x, y, columns, *x.stride(), y.stride(0), WIDE=wide, num_warps=4 if wide > 512 else 1)
    return y


@torch.inference_mode()
def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64):
    M, N = scores.shape
    o = torch.empty(M, v.shape[1], dtype=v.dtype, device=v.device)
    if M:
        lanes = Lanes.FEW if block <= 32 else Lanes.MANY
        Kernels.attend[(M,)](
            (scores, v, o),
            (N, v.shape[1]),
            (*scores.stride(), *v.stride()),
            BLOCK=int(lanes),
            WIDE=triton.next_power_of_2(v.shape[1]),
        )
    return o
