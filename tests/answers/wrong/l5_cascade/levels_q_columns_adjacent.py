"""The columns of q are taken to be adjacent.

exercise: multi_level_cascade
level: memory
diagnosis: out_of_bounds
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
def attend_tile(q, k, v, live, scale, m, l, acc):
    """One step of l1's recurrence in base 2: BLOCK_N more keys for a block of query rows.

    q[BLOCK_M, BLOCK_D] · k, v[BLOCK_N, BLOCK_D] · live[BLOCK_N]: which keys exist, at least one ·
    m, l[BLOCK_M], acc[BLOCK_M, BLOCK_D] float32: running max, sum and output. "ieee": no TF32 for float32.
    """
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
    """Write the rows' states to v_out[state, :] and s_out[state]. A row that saw no key becomes (0, -inf)."""
    cols = tl.arange(0, BLOCK_D)
    safe = tl.where(l > 0, l, 1.0)
    at = state[:, None] * D + cols[None, :]
    tl.store(v_out + at, acc / safe[:, None], mask=live[:, None] & (cols < D)[None, :])
    tl.store(s_out + state, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=live)


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
    slot = tl.program_id(0)
    kv_head = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)

    # Step 1: which group is this, and which of its rows. Group g's blocks start at slot first_row(g) // BLOCK_M + g,
    # which leaves it at least ceil(rows / BLOCK_M) slots; slots left over return.
    if GROUPED:
        group = find_group(group_indptr, groups, slot, G, BLOCK_M)
        if group < 0:
            return
        first_row = tl.load(group_indptr + group).to(tl.int32) * G
        end_row = tl.load(group_indptr + group + 1).to(tl.int32) * G
        block = slot - (first_row // BLOCK_M + group)
    else:
        blocks: tl.constexpr = (G + BLOCK_M - 1) // BLOCK_M
        group = slot // blocks
        first_row = group * G
        end_row = first_row + G
        block = slot % blocks
    rows = first_row + block * BLOCK_M + tl.arange(0, BLOCK_M)
    live_row = rows < end_row
    if first_row + block * BLOCK_M >= end_row:
        return

    # Step 2: how many keys it has. Without pages there is no last page to look at.
    first_page = tl.load(indptr + group)
    pages = (tl.load(indptr + group + 1) - first_page).to(tl.int32)
    last = tl.load(last_page_len + group, mask=pages > 0, other=0).to(tl.int32)
    length = tl.maximum(pages - 1, 0) * page_size + last

    # Step 3: attend, one block of keys at a time. A key's page comes from the table, its slot is what is left.
    request = (rows // G).to(tl.int64)
    head = kv_head * G + rows % G
    live_col = cols < D
    cols_wide = cols[None, :].to(tl.int64)
    q_at = request * q_b + head * q_h
    q_rows = tl.load(q + q_at[:, None] + cols_wide, mask=live_row[:, None] & live_col[None, :], other=0.0)
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    share = tl.cdiv(tl.cdiv(length, BLOCK_N), tl.num_programs(2)) * BLOCK_N
    for start in range(split * share, tl.minimum(split * share + share, length), BLOCK_N):
        key = start + keys
        live = key < length
        page = tl.load(indices + first_page + key // page_size, mask=live, other=0).to(tl.int64)
        k_at = page * kv_p + (key % page_size).to(tl.int64) * kv_n + kv_head * kv_h
        at = k_at[:, None] + cols_wide * kv_d
        mask = live[:, None] & live_col[None, :]
        k_tile = tl.load(kv + at, mask=mask, other=0.0)
        v_tile = tl.load(kv + at + kv_2, mask=mask, other=0.0)
        m, l, acc = attend_tile(q_rows, k_tile, v_tile, live, scale, m, l, acc)

    state = (request * N + split) * HEADS + head
    store_states(v_out, s_out, state, live_row, m, l, acc, D, BLOCK_D)


@triton.jit
def find_group(group_indptr, groups, slot, G: tl.constexpr, BLOCK_M: tl.constexpr):
    """The last group whose first slot is at or before `slot`; -1 if there is none."""
    group = -1
    for start in range(0, groups, 512):
        ids = start + tl.arange(0, 512)
        first_row = tl.load(group_indptr + ids, mask=ids < groups, other=0).to(tl.int32) * G
        group += tl.sum(((ids < groups) & (first_row // BLOCK_M + ids <= slot)).to(tl.int32), 0)
    return group


def blocks(q: torch.Tensor, rows: int) -> dict:
    """Launch configuration for blocks of up to `rows` query rows, chosen so that the tiles fit shared memory.

    Two tiles of BLOCK_N keys a stage (K and V) take at most 32 KiB, so three stages and 64 rows of q fit an A100.
    Few rows are bound by memory: small tiles let more programs run beside each other. float32 has no matrix unit, and
    a product of its tiles lives in registers: 16 keys at a time. tl.dot sums over 16 at least.
    """
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
    """In how many parts to cut `keys` keys when one part each gives `programs` programs.

    Enough to give every multiprocessor a program, but no part under 128 keys: a part costs a state to write, read and
    merge. The interpreter is taken for a GPU of four multiprocessors.
    """
    multiprocessors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 4
    return max(1, min(multiprocessors // max(1, programs), keys // 128))


def paged_splits(q: torch.Tensor, kv_cache: torch.Tensor, level: tuple) -> int:
    """Parts of each group's pages. Lengths are on the device; their mean, a hint, is not."""
    indptr, indices = level[1], level[2]
    groups = max(1, indptr.shape[0] - 1)
    return splits(q, groups * kv_cache.shape[3], indices.shape[0] * kv_cache.shape[2] // groups)


def workspace(q: torch.Tensor, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Room for `parts` states of each request and head: v[B, parts, Hq, D] and s[B, parts, Hq], unwritten."""
    v = torch.empty(q.shape[0], parts, q.shape[1], q.shape[2], dtype=torch.float32, device=q.device)
    return v, torch.empty(v.shape[:3], dtype=torch.float32, device=q.device)


def launch_paged(q, kv_cache, level, scale, v_out, s_out) -> None:
    """Attend to one level's pages; `level` is (group_indptr or None, kv_indptr, kv_indices, kv_last_page_len)."""
    batch, heads, dim = q.shape
    group_indptr, indptr, indices, last_page_len = (x if x is None else x.contiguous() for x in level)
    groups = indptr.shape[0] - 1
    group = heads // kv_cache.shape[3]
    config = blocks(q, group if group_indptr is None else triton.cdiv(batch, max(1, groups)) * group)
    if group_indptr is None:
        slots = groups * triton.cdiv(group, config["BLOCK_M"])
    else:
        slots = batch * group // config["BLOCK_M"] + groups
    grid = (slots, kv_cache.shape[3], v_out.shape[1])
    if batch and groups:
        attend_paged_kernel[grid](
            q, kv_cache, indptr if group_indptr is None else group_indptr, indptr, indices, last_page_len,
            v_out, s_out, scale * LOG2E, groups, heads, v_out.stride(0) // (heads * dim), kv_cache.shape[2],
            *q.stride(), *kv_cache.stride(), GROUPED=group_indptr is not None, G=group, **config,
        )  # fmt: skip


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
    scale = q.shape[2] ** -0.5 if scale is None else scale
    parts = [paged_splits(q, kv_cache, level) for level in levels]
    v, s = workspace(q, sum(parts))
    s.fill_(float("-inf"))  # nobody writes the states of a request that is in no group of a level
    first = 0
    for level, count in zip(levels, parts, strict=True):
        launch_paged(q, kv_cache, level, scale, v[:, first : first + count], s[:, first : first + count])
        first += count
    return merge_states(v, s, q.dtype)
