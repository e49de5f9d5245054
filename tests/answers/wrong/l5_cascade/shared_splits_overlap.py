"""A split is P / splits keys long, which is no whole number of blocks: its last block takes keys of the next.

exercise: attend_shared
level: value
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
def attend_tile(q, k, v, live, scale, m, l, acc):
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(live[None, :], scores, float("-inf"))
    m_new = tl.maximum(m, tl.max(scores, 1))
    p = tl.exp2(scores - m_new[:, None])
    rescale = tl.exp2(m - m_new)
    l = l * rescale + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
    return m_new, l, acc


@triton.jit
def store_states(v_out, s_out, state, live, m, l, acc, D: tl.constexpr, BLOCK_D: tl.constexpr):
    cols = tl.arange(0, BLOCK_D)
    safe = tl.where(l > 0, l, 1.0)
    at = state[:, None] * D + cols[None, :]
    tl.store(v_out + at, acc / safe[:, None], mask=live[:, None] & (cols < D)[None, :])
    tl.store(s_out + state, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=live)


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
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    kv_head = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)

    request = (rows // G).to(tl.int64)
    head = kv_head * G + rows % G
    live_row = rows < B * G
    live_col = cols < D
    cols_wide = cols[None, :].to(tl.int64)
    q_at = request * q_b + head * q_h
    q_rows = tl.load(q + q_at[:, None] + cols_wide * q_d, mask=live_row[:, None] & live_col[None, :], other=0.0)

    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    share = tl.cdiv(P, tl.num_programs(2))
    for start in range(split * share, tl.minimum(split * share + share, P), BLOCK_N):
        live = start + keys < P
        key = (start + keys).to(tl.int64)
        mask = live[:, None] & live_col[None, :]
        k_tile = tl.load(k + (key * k_n + kv_head * k_h)[:, None] + cols_wide * k_d, mask=mask, other=0.0)
        v_tile = tl.load(v + (key * v_n + kv_head * v_h)[:, None] + cols_wide * v_d, mask=mask, other=0.0)
        m, l, acc = attend_tile(q_rows, k_tile, v_tile, live, scale, m, l, acc)

    state = (request * N + split) * HEADS + head
    store_states(v_out, s_out, state, live_row, m, l, acc, D, BLOCK_D)


def blocks(q: torch.Tensor, rows: int) -> dict:
    half = q.element_size() == 2
    block_d = max(16, triton.next_power_of_2(q.shape[2]))
    row_bytes = block_d * q.element_size()
    most = 128 if half and row_bytes <= 256 else 64 if row_bytes <= 1024 else 16
    block_m = min(most, max(16, triton.next_power_of_2(rows)))
    block_n = min((64 if block_m >= 64 else 32) if half else 16, max(16, 16384 // row_bytes))
    wide = block_m * row_bytes > 64 * 256
    return {
        "D": q.shape[2],
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_D": block_d,
        "num_warps": 8 if wide else 4,
        "num_stages": 3 if row_bytes <= 512 else 2,
    }


def splits(q: torch.Tensor, programs: int, keys: int) -> int:
    multiprocessors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 4
    return max(1, min(multiprocessors // max(1, programs), keys // 128))


def shared_splits(q: torch.Tensor, k: torch.Tensor) -> int:
    rows = q.shape[0] * q.shape[1] // k.shape[1]
    return splits(q, triton.cdiv(rows, blocks(q, rows)["BLOCK_M"]) * k.shape[1], k.shape[0])


def workspace(q: torch.Tensor, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    v = torch.empty(q.shape[0], parts, q.shape[1], q.shape[2], dtype=torch.float32, device=q.device)
    return v, torch.empty(v.shape[:3], dtype=torch.float32, device=q.device)


def merge_parts(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (v[:, 0], s[:, 0]) if v.shape[1] == 1 else merge_states(v, s, torch.float32)


def launch_shared(q, k, v, scale, v_out, s_out) -> None:
    batch, heads, dim = q.shape
    group = heads // k.shape[1]
    config = blocks(q, batch * group)
    grid = (triton.cdiv(batch * group, config["BLOCK_M"]), k.shape[1], v_out.shape[1])
    if batch:
        attend_shared_kernel[grid](
            q, k, v, v_out, s_out, scale * LOG2E, batch, k.shape[0], heads, v_out.stride(0) // (heads * dim),
            *q.stride(), *k.stride(), *v.stride(), G=group, **config,
        )  # fmt: skip


def attend_shared(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    scale = q.shape[2] ** -0.5 if scale is None else scale
    states = workspace(q, shared_splits(q, k))
    launch_shared(q, k, v, scale, *states)
    return merge_parts(*states)
