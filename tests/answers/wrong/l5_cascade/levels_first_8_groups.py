"""At most 8 groups a level.

exercise: multi_level_cascade
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit(do_not_specialize=["rows", "N"])
def merge_states_kernel(
    v,  # [B, N, Hq, D] float32
    s,  # [B, N, Hq] float32, base 2; -inf where a state is empty
    v_out,  # [B, Hq, D]
    s_out,  # [B, Hq] float32
    rows,  # B * Hq
    N,
    HEADS,  # Hq
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_R: tl.constexpr,  # rows a program
    BLOCK_D: tl.constexpr,
):
    """A program merges the N states of BLOCK_R rows. A state of weight 0 is not read: its v may hold anything."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    cols = tl.arange(0, BLOCK_D)
    first = row // HEADS * N * HEADS + row % HEADS  # where a row's state 0 is; the next is HEADS further

    m = tl.full([BLOCK_R], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    acc = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(0, N, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        state = first[None, :] + part[:, None] * HEADS
        s_part = tl.load(s + state, mask=(part < N)[:, None] & (row < rows)[None, :], other=float("-inf"))
        m_new = tl.maximum(m, tl.max(s_part, 0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
        weight = tl.exp2(s_part - shift[None, :])
        v_at = v + state[:, :, None] * D + cols
        v_part = tl.load(v_at, mask=(weight > 0)[:, :, None] & (cols < D), other=0.0)
        rescale = tl.exp2(m - shift)
        total = total * rescale + tl.sum(weight, 0)
        acc = acc * rescale[:, None] + tl.sum(weight[:, :, None] * v_part, 0)
        m = m_new
    total = tl.where(m == float("-inf"), 1.0, total)
    result = (acc / total[:, None]).to(v_out.dtype.element_ty)
    tl.store(v_out + row[:, None] * D + cols, result, mask=(row < rows)[:, None] & (cols < D))
    tl.store(s_out + row, m + tl.log2(total), mask=row < rows)


def merge_states(v: torch.Tensor, s: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge v[B, N, Hq, D] float32 with s[B, N, Hq] into (v[B, Hq, D] in `dtype`, s[B, Hq] float32)."""
    batch, parts, heads, dim = v.shape
    v_out = torch.empty(batch, heads, dim, dtype=dtype, device=v.device)
    s_out = torch.empty(batch, heads, dtype=torch.float32, device=v.device)
    block_d = triton.next_power_of_2(dim)
    block_n = min(triton.next_power_of_2(max(1, parts)), max(1, 1024 // block_d))
    block_r = max(1, 1024 // block_d // block_n)
    if batch:
        merge_states_kernel[(triton.cdiv(batch * heads, block_r),)](
            v, s, v_out, s_out, batch * heads, parts, heads, dim, block_n, block_r, block_d, num_warps=1
        )
    return v_out, s_out


@triton.jit
def paged_kernel(
    q,
    kv,
    members,
    ptr,
    idx,
    last,
    vo,
    so,
    scale,
    groups,
    N,
    HQ,
    page,
    qb,
    qh,
    qd,
    kp,
    k2,
    kn,
    kh,
    kd,
    GROUPED: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    SLOTS: tl.constexpr,
    COLS: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, COLS).to(tl.int64)
    lo = b * 0
    hi = b * 0
    tail = b * 0
    if GROUPED:
        for g in range(0, tl.minimum(groups, 8)):
            first = tl.load(members + g)
            end = tl.load(members + g + 1)
            if (first <= b) & (b < end):
                lo = tl.load(ptr + g).to(tl.int64)
                hi = tl.load(ptr + g + 1).to(tl.int64)
                if hi > lo:
                    tail = tl.load(last + g).to(tl.int64)
    else:
        lo = tl.load(ptr + b).to(tl.int64)
        hi = tl.load(ptr + b + 1).to(tl.int64)
        if hi > lo:
            tail = tl.load(last + b).to(tl.int64)
    qv = tl.load(q + b * qb + h * qh + c * qd, mask=c < D, other=0.0).to(tl.float32) * scale
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([COLS], tl.float32)
    for j in range(lo, hi):
        number = tl.load(idx + j).to(tl.int64)
        length = tl.where(j == hi - 1, tail, page)
        base = kv + number * kp + (h // G) * kh
        for at in range(0, length, SLOTS):
            t = at + tl.arange(0, SLOTS).to(tl.int64)
            ok = (t < length)[:, None] & (c < D)[None, :]
            kt = tl.load(base + t[:, None] * kn + c[None, :] * kd, mask=ok, other=0.0).to(tl.float32)
            vt = tl.load(base + k2 + t[:, None] * kn + c[None, :] * kd, mask=ok, other=0.0).to(tl.float32)
            x = tl.where(t < length, tl.sum(kt * qv[None, :], 1), float("-inf"))
            new = tl.maximum(m, tl.max(x, 0))
            f = tl.exp2(m - new)
            p = tl.exp2(x - new)
            l = l * f + tl.sum(p, 0)
            acc = acc * f + tl.sum(p[:, None] * vt, 0)
            m = new
    l = tl.where(l > 0, l, 1.0)
    at_out = (b * N) * HQ + h
    tl.store(vo + at_out * D + c, acc / l, mask=c < D)
    tl.store(so + at_out, m + tl.log2(l))


def run_paged(q, kv, members, ptr, idx, last, scale, out, s, parts):
    B, HQ, D = q.shape
    page, HKV = kv.shape[2], kv.shape[3]
    if B:
        paged_kernel[(B, HQ)](
            q,
            kv,
            members,
            ptr.contiguous(),
            idx.contiguous(),
            last.contiguous(),
            out,
            s,
            scale * LOG2E,
            ptr.shape[0] - 1,
            parts,
            HQ,
            page,
            *q.stride(),
            *kv.stride(),
            GROUPED=members is not None,
            G=HQ // HKV,
            D=D,
            SLOTS=8,
            COLS=triton.next_power_of_2(D),
        )


def multi_level_cascade(q, kv_cache, levels, scale=None):
    B, HQ, D = q.shape
    scale = D**-0.5 if scale is None else scale
    parts = len(levels)
    v = torch.empty(B, parts, HQ, D, dtype=torch.float32, device=q.device)
    s = torch.empty(B, parts, HQ, dtype=torch.float32, device=q.device)
    for n, (members, ptr, idx, last) in enumerate(levels):
        run_paged(q, kv_cache, members.contiguous(), ptr, idx, last, scale, v[:, n], s[:, n], parts)
    return merge_states(v, s, q.dtype)
