"""Every row is split over programs that leave their sums in a workspace, and a second launch merges or scales."""

import torch
import triton
import triton.language as tl


@triton.jit
def chunk_kernel(x_ptr, wm_ptr, wl_ptr, N, sr, sc, CHUNKS, PER: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0)
    j = c * PER + tl.arange(0, PER)
    x = tl.load(x_ptr + row * sr + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
    m = tl.max(x)
    s = tl.where(m > float("-inf"), m, 0.0)
    tl.store(wm_ptr + row * CHUNKS + c, m)
    tl.store(wl_ptr + row * CHUNKS + c, tl.sum(tl.exp(x - s)))


@triton.jit
def fold_kernel(wm_ptr, wl_ptr, m_ptr, l_ptr, CHUNKS, P: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, P)
    wm = tl.load(wm_ptr + row * CHUNKS + c, mask=c < CHUNKS, other=float("-inf"))
    wl = tl.load(wl_ptr + row * CHUNKS + c, mask=c < CHUNKS, other=0)
    m = tl.max(wm, axis=0)
    s = tl.where(m > float("-inf"), m, 0.0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, tl.sum(wl * tl.exp(wm - s), axis=0))


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.full((M,), float("-inf"), dtype=torch.float32, device=x.device)
    l = torch.zeros((M,), dtype=torch.float32, device=x.device)
    if M == 0 or N == 0:
        return m, l
    per = max(16, min(block, 256))
    chunks = triton.cdiv(N, per)
    wm = torch.empty((M, chunks), dtype=torch.float32, device=x.device)
    wl = torch.empty((M, chunks), dtype=torch.float32, device=x.device)
    chunk_kernel[(chunks, M)](x, wm, wl, N, x.stride(0), x.stride(1), chunks, PER=per)
    fold_kernel[(M,)](wm, wl, m, l, chunks, P=triton.next_power_of_2(chunks))
    return m, l


@triton.jit
def scale_kernel(x_ptr, m_ptr, l_ptr, y_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    j = tl.program_id(0) * C + tl.arange(0, C)
    m = tl.load(m_ptr + row)
    l = tl.load(l_ptr + row)
    x = tl.load(x_ptr + row * sr + j.to(tl.int64) * sc, mask=j < N, other=0.0).to(tl.float32)
    y = tl.where(m == float("-inf"), 0.0, tl.exp(x - m) / l)
    tl.store(y_ptr + row * N + j, y, mask=j < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        m, l = softmax_stats(x, block)
        C = min(block, 512)
        scale_kernel[(triton.cdiv(N, C), M)](x, m, l, y, N, x.stride(0), x.stride(1), C)
    return y


@triton.jit
def some_columns_kernel(
    s_ptr, v_ptr, wm_ptr, wl_ptr, wo_ptr, N, ss0, ss1, sv0, sv1, K, D: tl.constexpr, C: tl.constexpr, W: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1)
    n = (k * C + tl.arange(0, C)).to(tl.int64)
    d = tl.arange(0, W)
    s = tl.load(s_ptr + row * ss0 + n * ss1, mask=n < N, other=float("-inf")).to(tl.float32)
    v = tl.load(
        v_ptr + n[None, :] * sv0 + d[:, None].to(tl.int64) * sv1, mask=(n < N)[None, :] & (d < D)[:, None], other=0.0
    ).to(tl.float32)
    m = tl.max(s, 0)
    p = tl.exp(s - tl.where(m == float("-inf"), 0.0, m))
    at = row * K + k
    tl.store(wm_ptr + at, m)
    tl.store(wl_ptr + at, tl.sum(p, 0))
    tl.store(wo_ptr + at * D + d, tl.sum(p[None, :] * v, 1), mask=d < D)


@triton.jit
def together_kernel(wm_ptr, wl_ptr, wo_ptr, o_ptr, K, D: tl.constexpr, P: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, P)
    d = tl.arange(0, W)
    wm = tl.load(wm_ptr + row * K + k, mask=k < K, other=float("-inf"))
    top = tl.max(wm, 0)
    f = tl.exp(wm - tl.where(top == float("-inf"), 0.0, top))
    wl = tl.load(wl_ptr + row * K + k, mask=k < K, other=0.0)
    wo = tl.load(wo_ptr + (row * K + k)[:, None] * D + d[None, :], mask=(k < K)[:, None] & (d < D)[None, :], other=0.0)
    l = tl.sum(f * wl, 0)
    o = tl.sum(f[:, None] * wo, 0)
    tl.store(o_ptr + row * D + d, tl.where(l > 0, o / tl.where(l > 0, l, 1.0), 0.0), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.zeros((M, D), dtype=v.dtype, device=v.device)
    if M == 0 or N == 0:
        return o
    C = max(1, min(block, 64, 8192 // triton.next_power_of_2(D)))
    K = triton.cdiv(N, C)
    wm = scores.new_empty((M, K), dtype=torch.float32)
    wl = torch.empty_like(wm)
    wo = scores.new_empty((M, K, D), dtype=torch.float32)
    some_columns_kernel[(M, K)](
        scores, v, wm, wl, wo, N, *scores.stride(), *v.stride(), K, D, C, triton.next_power_of_2(D)
    )
    together_kernel[(M,)](wm, wl, wo, o, K, D, triton.next_power_of_2(K), triton.next_power_of_2(D))
    return o
