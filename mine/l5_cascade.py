"""Cascade attention: the prefix that all requests share is read once, each request's own pages beside it.

Each part of the keys yields states (v, s): attention over that part, and the base-2 log of its softmax sum.
States merge (l4), so a long part may be cut into splits, and a sequence into levels, without changing the result.

q, k, v and pages are float16, bfloat16 or float32, index tensors int32 or int64; all of any strides.
scale is 1/sqrt(D) if None.

Names: B requests · Hq query heads · Hkv key/value heads · G = Hq / Hkv · D head dim · P shared keys · N states.
A KV head's query rows are numbered r = request * G + g and belong to query head kv_head * G + g.
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


# Given: merging N states, the subject of l4.


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
    """Program (block of query rows, KV head, split of the prefix): one read of the split serves all its rows."""
    pass


@triton.jit(do_not_specialize=["groups", "N"])
def attend_paged_kernel(
    q,  # [B, Hq, D], strides q_b, q_h, q_d
    kv,  # [pages, 2, page_size, Hkv, D]: keys at [:, 0], values at [:, 1]; strides kv_p, kv_2, kv_n, kv_h, kv_d
    group_indptr,  # [groups + 1]: group g holds requests group_indptr[g] to group_indptr[g + 1]; unused if not GROUPED
    indptr,  # [groups + 1]: group g owns pages indices[indptr[g] : indptr[g + 1]]
    indices,
    last_page_len,  # [groups]
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,
    groups,
    HEADS,  # Hq
    N,
    page_size,
    q_b, q_h, q_d, kv_p, kv_2, kv_n, kv_h, kv_d,
    GROUPED: tl.constexpr,  # False: group g is request g alone
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Program (slot, KV head, split): a slot is a block of query rows of one group; a split is a share of its keys."""
    pass


def attend_shared(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of every request to one prefix.

    q[B, Hq, D] · k, v[P, Hkv, D] → v[B, Hq, D] float32, s[B, Hq] float32 base 2; P = 0 gives (0, -inf).
    Query head h uses KV head h // G. A KV head's prefix is read once for a block of queries.
    """
    raise NotImplementedError("attend_shared: your turn")


def attend_paged(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of each request to its own pages.

    q[B, Hq, D] · kv_cache[pages, 2, page_size, Hkv, D] · indptr[B + 1], indices[...], last_page_len[B]: request i
    owns pages indices[indptr[i] : indptr[i + 1]], in that order; the last holds last_page_len[i] keys, and its other
    slots may hold NaN. Without pages last_page_len[i] is not looked at. indptr[0] may exceed 0.
    → v[B, Hq, D] float32, s[B, Hq] float32 base 2; no pages give (0, -inf).
    """
    raise NotImplementedError("attend_paged: your turn")


def cascade(
    q: torch.Tensor,
    k_shared: torch.Tensor,
    v_shared: torch.Tensor,
    kv_cache: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`attend_shared` and `attend_paged`, merged: v[B, Hq, D] in q's dtype, s[B, Hq] float32 base 2.

    A request with no key on either side gives (0, -inf).
    """
    raise NotImplementedError("cascade: your turn")


def multi_level_cascade(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    levels: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]],
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Any number of levels, each a list of groups of requests that share one run of pages, merged.

    A level is (group_indptr[groups + 1], kv_indptr[groups + 1], kv_indices[...], kv_last_page_len[groups]);
    group g holds requests group_indptr[g] to group_indptr[g + 1]. A request in no group is empty at that level.
    → v[B, Hq, D] in q's dtype, s[B, Hq] float32 base 2; a request with no key at any level gives (0, -inf).
    """
    raise NotImplementedError("multi_level_cascade: your turn")
