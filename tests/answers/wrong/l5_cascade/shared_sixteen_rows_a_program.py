"""Sixteen rows a program, so that 64 rows read the prefix four times.

exercise: attend_shared
level: traffic
diagnosis: traffic
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit(do_not_specialize=["B", "P", "N"])
def attend_shared_kernel(
    q,  # [B, Hq, D], strides q_b, q_h, q_d
    k,  # [P, Hkv, D], strides k_n, k_h, k_d
    v,  # [P, Hkv, D], strides v_n, v_h, v_d
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,  # 1/sqrt(D) * log2(e): scores come out in base 2
    B,
    P,
    HEADS,  # Hq
    N,
    q_b, q_h, q_d, k_n, k_h, k_d, v_n, v_h, v_d,
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,  # query rows
    BLOCK_N: tl.constexpr,  # keys a step
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Program (block of query rows, KV head)."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    kv_head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    request = (rows // G).to(tl.int64)
    head = kv_head * G + rows % G
    row_ok = rows < B * G
    col_ok = cols < D
    q_at = (request * q_b + head * q_h)[:, None] + cols[None, :] * q_d
    q_rows = tl.load(q + q_at, mask=row_ok[:, None] & col_ok[None, :], other=0.0)
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for start in range(0, P, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        ok = (key < P)[:, None] & col_ok[None, :]
        key64 = key.to(tl.int64)
        k_tile = tl.load(k + kv_head * k_h + key64[:, None] * k_n + cols[None, :] * k_d, mask=ok, other=0.0)
        v_tile = tl.load(v + kv_head * v_h + key64[:, None] * v_n + cols[None, :] * v_d, mask=ok, other=0.0)
        scores = tl.dot(q_rows, tl.trans(k_tile), input_precision="ieee") * scale
        scores = tl.where((key < P)[None, :], scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        rescale = tl.exp2(m - m_new)
        l = l * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * rescale[:, None], input_precision="ieee")
        m = m_new
    safe = tl.where(l > 0, l, 1.0)
    out = request * N * HEADS + head
    tl.store(v_out + out[:, None] * D + cols[None, :], acc / safe[:, None], mask=row_ok[:, None] & col_ok[None, :])
    tl.store(s_out + out, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=row_ok)


def attend_shared(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of every request to one prefix.

    q[B, Hq, D] · k, v[P, Hkv, D] → v[B, Hq, D] float32, s[B, Hq] float32 base 2; P = 0 gives (0, -inf).
    Query head h uses KV head h // G. A KV head's prefix is read once for a block of queries.
    """
    B, Hq, D = q.shape
    v_out = torch.empty(B, 1, Hq, D, dtype=torch.float32, device=q.device)
    s_out = torch.empty(B, 1, Hq, dtype=torch.float32, device=q.device)
    launch_shared(q, k, v, scale, v_out, s_out)
    return v_out[:, 0], s_out[:, 0]


def launch_shared(q, k, v, scale, v_out, s_out):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    if B == 0:
        return
    G = Hq // Hkv
    if scale is None:
        scale = D**-0.5
    BLOCK_M = 16
    attend_shared_kernel[(triton.cdiv(B * G, BLOCK_M), Hkv)](
        q,
        k,
        v,
        v_out,
        s_out,
        scale * LOG2E,
        B,
        P,
        Hq,
        v_out.stride(0) // (Hq * D),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        G=G,
        D=D,
        BLOCK_M=BLOCK_M,
        BLOCK_N=16 if q.dtype == torch.float32 else 32,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
    )
