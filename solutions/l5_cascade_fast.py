"""The fast cascade: what l5_cascade.py computes, in launches that overlap, with loops that a Hopper GPU likes.

Same four functions, same contract. Each change against the lesson's version stands in content/l5_cascade_fast.md with
the time that it bought. Names are those of l5_cascade.py.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2E = 1.4426950408889634
INTERPRETED_PROGRAMS = 8
"""How many programs the interpreter is taken to run at once, so that splits are seen there too."""


@triton.jit
def attend_tile(q, k, v, live, scale, m, l, acc, MASKED: tl.constexpr):
    """One step of the recurrence over BLOCK_N keys. MASKED: only keys that are `live` count; at least one is."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    if MASKED:
        scores = tl.where(live[None, :], scores, float("-inf"))
    m_new = tl.maximum(m, tl.max(scores, 1))
    p = tl.exp2(scores - m_new[:, None])
    rescale = tl.exp2(m - m_new)
    l = l * rescale + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
    return m_new, l, acc


@triton.jit
def load_tile(at, live_key, live_col, MASKED: tl.constexpr, FULL_D: tl.constexpr):
    """A tile [BLOCK_N, BLOCK_D], 0 where a key or a column does not exist. No mask is computed where none is needed."""
    if MASKED:
        if FULL_D:
            return tl.load(at, mask=live_key[:, None], other=0.0)
        return tl.load(at, mask=live_key[:, None] & live_col[None, :], other=0.0)
    if FULL_D:
        return tl.load(at)
    return tl.load(at, mask=live_col[None, :], other=0.0)


@triton.jit
def store_states(v_out, s_out, state, live, m, l, acc, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Write the rows' states to v_out[state, :] and s_out[state]. A row that saw no key becomes (0, -inf)."""
    cols = tl.arange(0, BLOCK_D)
    safe = tl.where(l > 0, l, 1.0)
    at = state[:, None] * D + cols[None, :]
    tl.store(v_out + at, acc / safe[:, None], mask=live[:, None] & (cols < D)[None, :])
    tl.store(s_out + state, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=live)


@triton.jit
def load_shared(k, start, keys, kv_head, k_n, k_h, k_d, P, D: tl.constexpr, BLOCK_N: tl.constexpr,
                BLOCK_D: tl.constexpr, BULK: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """Tile [BLOCK_N, BLOCK_D] of one KV head from key `start` on, 0 where there is none.

    BULK: k is a descriptor, and the copy engine fetches the tile with one instruction of one thread.
    """
    if BULK:
        tile = k.load([start, kv_head, 0]).reshape(BLOCK_N, BLOCK_D)
    else:
        cols = tl.arange(0, BLOCK_D)
        key = (start + keys).to(tl.int64)
        at = k + (key * k_n + kv_head * k_h)[:, None] + cols[None, :] * k_d
        tile = load_tile(at, start + keys < P, cols < D, MASKED, D == BLOCK_D)
    return tile


@triton.jit(do_not_specialize=["B", "P", "N"])
def attend_shared_kernel(
    q,  # [B, Hq, D]
    k,  # [P, Hkv, D], or its descriptor
    v,  # [P, Hkv, D], or its descriptor
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,
    B, P, HEADS, N,
    q_b, q_h, q_d, k_n, k_h, k_d, v_n, v_h, v_d,  # strides
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BULK: tl.constexpr,
    OVERLAP: tl.constexpr,  # the next launch may start beside this one
):  # fmt: skip
    if OVERLAP:
        gdc_launch_dependents()
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)

    request = (rows // G).to(tl.int64)
    head = kv_head * G + rows % G
    live_row = rows < B * G
    q_at = request * q_b + head * q_h
    q_rows = tl.load(q + q_at[:, None] + cols[None, :] * q_d, mask=live_row[:, None] & (cols < D)[None, :], other=0.0)

    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    share = tl.cdiv(tl.cdiv(P, BLOCK_N), tl.num_programs(2)) * BLOCK_N
    begin = split * share
    end = tl.minimum(begin + share, P)
    whole = begin + tl.maximum(end - begin, 0) // BLOCK_N * BLOCK_N
    for start in range(begin, whole, BLOCK_N):
        k_tile = load_shared(k, start, keys, kv_head, k_n, k_h, k_d, P, D, BLOCK_N, BLOCK_D, BULK, False)
        v_tile = load_shared(v, start, keys, kv_head, v_n, v_h, v_d, P, D, BLOCK_N, BLOCK_D, BULK, False)
        m, l, acc = attend_tile(q_rows, k_tile, v_tile, keys, scale, m, l, acc, False)
    if whole < end:
        k_tile = load_shared(k, whole, keys, kv_head, k_n, k_h, k_d, P, D, BLOCK_N, BLOCK_D, BULK, True)
        v_tile = load_shared(v, whole, keys, kv_head, v_n, v_h, v_d, P, D, BLOCK_N, BLOCK_D, BULK, True)
        m, l, acc = attend_tile(q_rows, k_tile, v_tile, whole + keys < P, scale, m, l, acc, True)

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


@triton.jit(do_not_specialize=["groups", "N"])
def attend_paged_kernel(
    q,  # [B, Hq, D]
    kv,  # [pages, 2, PAGE, Hkv, D]
    group_indptr,  # [groups + 1]; unused if not GROUPED
    indptr,  # [groups + 1]
    indices,
    last_page_len,  # [groups]
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,
    groups, HEADS, N,
    q_b, q_h, q_d, kv_p, kv_2, kv_n, kv_h, kv_d,  # strides
    PAGE: tl.constexpr,
    GROUPED: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    OVERLAP: tl.constexpr,  # runs beside the launch before it, and the next may start beside this one
    EVICT: tl.constexpr = "evict_first",
):  # fmt: skip
    slot = tl.program_id(1)
    kv_head = tl.program_id(0)
    split = tl.program_id(2)
    if OVERLAP:
        gdc_launch_dependents()
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)
    live_col = cols < D

    if GROUPED:
        group = find_group(group_indptr, groups, slot, G, BLOCK_M)
        found = group >= 0
        group = tl.maximum(group, 0)
        first_row = tl.load(group_indptr + group).to(tl.int32) * G
        end_row = tl.load(group_indptr + group + 1).to(tl.int32) * G
        first_row += tl.maximum(slot - (first_row // BLOCK_M + group), 0) * BLOCK_M
        end_row = tl.where(found, end_row, 0)
    else:
        blocks: tl.constexpr = (G + BLOCK_M - 1) // BLOCK_M
        group = slot // blocks
        first_row = group * G + slot % blocks * BLOCK_M
        end_row = group * G + G

    if first_row < end_row:
        rows = first_row + tl.arange(0, BLOCK_M)
        live_row = rows < end_row
        request = (rows // G).to(tl.int64)
        head = kv_head * G + rows % G
        q_at = request * q_b + head * q_h
        q_rows = tl.load(q + q_at[:, None] + cols[None, :] * q_d, mask=live_row[:, None] & live_col[None, :], other=0.0)

        first_page = tl.load(indptr + group)
        pages = (tl.load(indptr + group + 1) - first_page).to(tl.int32)
        last = tl.load(last_page_len + group, mask=pages > 0, other=0).to(tl.int32)
        length = tl.maximum(pages - 1, 0) * PAGE + last
        share = tl.cdiv(tl.cdiv(length, BLOCK_N), tl.num_programs(2)) * BLOCK_N
        begin = split * share
        end = tl.minimum(begin + share, length)

        m = tl.full([BLOCK_M], float("-inf"), tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        table = indices + first_page
        page = tl.load(table + (begin + keys) // PAGE, mask=begin + keys < end, other=0).to(tl.int64)
        for start in range(begin, end, BLOCK_N):
            key = start + keys
            live = key < end
            k_at = page * kv_p + (key % PAGE).to(tl.int64) * kv_n + kv_head * kv_h
            at = k_at[:, None] + cols[None, :] * kv_d
            mask = live[:, None] & live_col[None, :]
            k_tile = tl.load(kv + at, mask=mask, other=0.0, eviction_policy=EVICT)
            v_tile = tl.load(kv + at + kv_2, mask=mask, other=0.0, eviction_policy=EVICT)
            # The next step's pages are asked for now: K and V need not wait for them then.
            page = tl.load(table + (key + BLOCK_N) // PAGE, mask=key + BLOCK_N < end, other=0).to(tl.int64)
            m, l, acc = attend_tile(q_rows, k_tile, v_tile, live, scale, m, l, acc, True)
        state = (request * N + split) * HEADS + head
        store_states(v_out, s_out, state, live_row, m, l, acc, D, BLOCK_D)

    # A launch is over when its last program is. This one waits for the launch before, so that whoever waits for
    # this launch has waited for both; one program is enough, and the others leave the multiprocessor free.
    if OVERLAP:
        if (slot == tl.num_programs(1) - 1) & (kv_head == tl.num_programs(0) - 1) & (split == tl.num_programs(2) - 1):
            gdc_wait()


@triton.jit(do_not_specialize=["rows", "N"])
def merge_states_kernel(
    v,  # [B, N, Hq, D] float32
    s,  # [B, N, Hq] float32
    v_out,  # [B, Hq, D]
    s_out,  # [B, Hq] float32
    rows, N, HEADS,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
    OVERLAP: tl.constexpr,  # starts before the launch before it is over
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    cols = tl.arange(0, BLOCK_D)
    first = row // HEADS * N * HEADS + row % HEADS

    m = tl.full([BLOCK_R], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    acc = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    if OVERLAP:
        gdc_wait()
    for start in range(0, N, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        state = first[None, :] + part[:, None] * HEADS
        exists = (part < N)[:, None] & (row < rows)[None, :]
        s_part = tl.load(s + state, mask=exists, other=float("-inf"))
        # v is asked for beside s, not after it; an empty state's v is dropped once s is known.
        v_part = tl.load(v + state[:, :, None] * D + cols, mask=exists[:, :, None] & (cols < D), other=0.0)
        m_new = tl.maximum(m, tl.max(s_part, 0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        weight = tl.exp2(s_part - shift[None, :])
        rescale = tl.exp2(m - shift)
        v_part = tl.where((weight > 0)[:, :, None], v_part, 0.0)
        total = total * rescale + tl.sum(weight, 0)
        acc = acc * rescale[:, None] + tl.sum(weight[:, :, None] * v_part, 0)
        m = m_new
    total = tl.where(m == float("-inf"), 1.0, total)
    result = (acc / total[:, None]).to(v_out.dtype.element_ty)
    tl.store(v_out + row[:, None] * D + cols, result, mask=(row < rows)[:, None] & (cols < D))
    tl.store(s_out + row, m + tl.log2(total), mask=row < rows)


def slots(q: torch.Tensor) -> int:
    """How many programs of the size used here run at once: two on each multiprocessor."""
    return 2 * torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else INTERPRETED_PROGRAMS


def overlap(q: torch.Tensor) -> bool:
    """Whether the GPU can start a launch before the one ahead of it is over: Hopper and later."""
    return q.is_cuda and torch.cuda.get_device_capability(q.device) >= (9, 0)


def bulk_copies(x: torch.Tensor) -> bool:
    """Whether Hopper's copy engine can fetch tiles of x[n, Hkv, D]: rows whole, and 16 bytes the unit of every step."""
    size = x.element_size()
    steps = [x.data_ptr(), x.stride(0) * size, x.stride(1) * size]
    return overlap(x) and x.numel() > 0 and size == 2 and x.stride(2) == 1 and all(step % 16 == 0 for step in steps)


def tile(q: torch.Tensor, rows: int) -> dict:
    """Tile sizes, warps and pipeline depth for blocks of up to `rows` query rows."""
    block_d = max(16, triton.next_power_of_2(q.shape[2]))
    row_bytes = block_d * q.element_size()
    half = q.element_size() == 2
    most = 128 if half and row_bytes <= 256 else 64 if row_bytes <= 1024 else 16
    block_m = min(most, max(16, triton.next_power_of_2(rows)))
    return {
        "D": q.shape[2],
        "BLOCK_M": block_m,
        "BLOCK_N": min(64, max(16, 16384 // row_bytes)),
        "BLOCK_D": block_d,
        "num_warps": 8 if block_m * block_d > 64 * 128 else 4,
        "num_stages": 3 if row_bytes <= 512 else 2,
    }


def shared_splits(q: torch.Tensor, k: torch.Tensor) -> int:
    """In how many parts the shared prefix is cut."""
    rows = q.shape[0] * q.shape[1] // k.shape[1]
    blocks = triton.cdiv(rows, tile(q, rows)["BLOCK_M"]) * k.shape[1]
    want = slots(q) if rows <= 64 else slots(q) // 2
    return max(1, min(want // max(1, blocks), k.shape[0] // 128, 64))


def paged_splits(q: torch.Tensor, kv_cache: torch.Tensor, level: tuple) -> int:
    """In how many parts each group's pages are cut. Lengths are on the device; their mean, a hint, is not."""
    group_indptr, indptr, indices, _ = level
    groups = max(1, indptr.shape[0] - 1)
    keys = indices.shape[0] * kv_cache.shape[2] // groups
    rows = triton.cdiv(q.shape[0], groups) * q.shape[1] // kv_cache.shape[3]
    blocks = groups * kv_cache.shape[3] * triton.cdiv(rows, tile(q, rows)["BLOCK_M"])
    return max(1, min(slots(q) // max(1, blocks), keys // 128, 64))


def workspace(q: torch.Tensor, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """v[B, parts, Hq, D] and s[B, parts, Hq], float32, unwritten."""
    v = torch.empty(q.shape[0], parts, q.shape[1], q.shape[2], dtype=torch.float32, device=q.device)
    return v, torch.empty(v.shape[:3], dtype=torch.float32, device=q.device)


def launch_options(beside: bool) -> dict:
    """The launch attribute that lets a launch start beside the one ahead of it."""
    return {"launch_pdl": True} if beside else {}


def launch_shared(q, k, v, scale, v_out, s_out, config=None) -> None:
    """Attend to the shared keys; v_out and s_out are slices [:, a:b] of a workspace, one state a split."""
    batch, heads, dim = q.shape
    group = heads // k.shape[1]
    config = dict(config or tile(q, batch * group))
    grid = (triton.cdiv(batch * group, config["BLOCK_M"]), k.shape[1], v_out.shape[1])
    bulk = config.pop("BULK", True) and bulk_copies(k) and bulk_copies(v)
    block = [config["BLOCK_N"], 1, config["BLOCK_D"]]
    attend_shared_kernel[grid](
        q, TensorDescriptor.from_tensor(k, block) if bulk else k, TensorDescriptor.from_tensor(v, block) if bulk else v,
        v_out, s_out, scale * LOG2E, batch, k.shape[0], heads, v_out.stride(0) // (heads * dim),
        *q.stride(), *k.stride(), *v.stride(), G=group, BULK=bulk, OVERLAP=overlap(q), **config,
    )  # fmt: skip


def launch_paged(q, kv_cache, level, scale, v_out, s_out, beside, config=None) -> None:
    """Attend to one level's pages. beside: the launch ahead is this call's own, so this one may start before it ends."""
    batch, heads, dim = q.shape
    group_indptr, indptr, indices, last_page_len = (x if x is None else x.contiguous() for x in level)
    groups = indptr.shape[0] - 1
    group = heads // kv_cache.shape[3]
    config = config or tile(q, group if group_indptr is None else triton.cdiv(batch, max(1, groups)) * group)
    if group_indptr is None:
        rows = groups * triton.cdiv(group, config["BLOCK_M"])
    else:
        rows = batch * group // config["BLOCK_M"] + groups
    grid = (kv_cache.shape[3], rows, v_out.shape[1])
    attend_paged_kernel[grid](
        q, kv_cache, indptr if group_indptr is None else group_indptr, indptr, indices, last_page_len,
        v_out, s_out, scale * LOG2E, groups, heads, v_out.stride(0) // (heads * dim),
        *q.stride(), *kv_cache.stride(), PAGE=kv_cache.shape[2], GROUPED=group_indptr is not None, G=group,
        OVERLAP=overlap(q), **config, **launch_options(beside and overlap(q)),
    )  # fmt: skip


MERGE = {"elements": 2048, "warps": 1, "most": 16}


def merge_states(v, s, dtype, beside) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge v[B, N, Hq, D] float32 with s[B, N, Hq] into (v[B, Hq, D] in `dtype`, s[B, Hq] float32)."""
    batch, parts, heads, dim = v.shape
    v_out = torch.empty(batch, heads, dim, dtype=dtype, device=v.device)
    s_out = torch.empty(batch, heads, dtype=torch.float32, device=v.device)
    block_d = triton.next_power_of_2(dim)
    block_n = min(triton.next_power_of_2(max(1, parts)), MERGE["most"], max(1, MERGE["elements"] // block_d))
    block_r = max(1, MERGE["elements"] // block_d // block_n)
    if batch:
        merge_states_kernel[(triton.cdiv(batch * heads, block_r),)](
            v, s, v_out, s_out, batch * heads, parts, heads, dim, block_n, block_r, block_d, num_warps=MERGE["warps"],
            OVERLAP=beside and overlap(v), **launch_options(beside and overlap(v)),
        )  # fmt: skip
    return v_out, s_out


def attend_shared(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """As l5_cascade.attend_shared."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    states = workspace(q, shared_splits(q, k))
    if q.shape[0]:
        launch_shared(q, k, v, scale, *states)
    return merge_states(*states, torch.float32, beside=True)


def attend_paged(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As l5_cascade.attend_paged."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    level = (None, indptr, indices, last_page_len)
    states = workspace(q, paged_splits(q, kv_cache, level))
    if q.shape[0]:
        launch_paged(q, kv_cache, level, scale, *states, beside=False)
    return merge_states(*states, torch.float32, beside=True)


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
    """As l5_cascade.cascade: the two attentions run beside each other, the merge behind both."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    level = (None, indptr, indices, last_page_len)
    shared = shared_splits(q, k_shared)
    v, s = workspace(q, shared + paged_splits(q, kv_cache, level))
    if q.shape[0]:
        launch_shared(q, k_shared, v_shared, scale, v[:, :shared], s[:, :shared])
        launch_paged(q, kv_cache, level, scale, v[:, shared:], s[:, shared:], beside=True)
    return merge_states(v, s, q.dtype, beside=True)


def multi_level_cascade(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    levels: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]],
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As l5_cascade.multi_level_cascade: the levels run beside each other, the merge behind them all."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    levels = [level for level in levels if level[1].shape[0] > 1]
    parts = [paged_splits(q, kv_cache, level) for level in levels]
    v, s = workspace(q, sum(parts))
    s.fill_(float("-inf"))  # a request that is in no group of a level is written by nobody
    first = 0
    for i, (level, count) in enumerate(zip(levels, parts, strict=True)):
        if q.shape[0]:
            launch_paged(
                q, kv_cache, level, scale, v[:, first : first + count], s[:, first : first + count], beside=i > 0
            )
        first += count
    return merge_states(v, s, q.dtype, beside=bool(levels))
