"""Natural logs inside; a program does all KV heads of the prefix; a block pointer a page; a launch for every group."""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def more_keys(q, k, v, live, scale, m, l, acc):
    """The recurrence with natural exponentials, rows by keys."""
    x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    x = tl.where(live[None, :], x, float("-inf"))
    top = tl.maximum(m, tl.max(x, 1))
    w = tl.exp(x - top[:, None])
    keep = tl.exp(m - top)
    return top, l * keep + tl.sum(w, 1), tl.dot(w.to(v.dtype), v, acc * keep[:, None], input_precision="ieee")


@triton.jit
def prefix_kernel(q, k, v, v_out, s_out, rows, P, Hq, Hkv, G, D, scale, q_b, q_h, q_d, k_n, k_h, k_d, v_n, v_h, v_d,
                  ROWS: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, WIDE)
    n = tl.arange(0, KEYS)
    ok = (row < rows)[:, None] & (d < D)[None, :]
    b = (row // G).to(tl.int64)
    for kv_head in range(0, Hkv):
        head = (kv_head * G + row % G).to(tl.int64)
        x = tl.load(q + (b * q_b + head * q_h)[:, None] + d[None, :] * q_d, mask=ok, other=0.0)
        m = tl.full([ROWS], float("-inf"), tl.float32)
        l = tl.zeros([ROWS], tl.float32)
        acc = tl.zeros([ROWS, WIDE], tl.float32)
        for start in range(0, P, KEYS):
            key = (start + n).to(tl.int64)[:, None]
            inside = (key < P) & (d < D)[None, :]
            k_tile = tl.load(k + key * k_n + kv_head.to(tl.int64) * k_h + d[None, :] * k_d, mask=inside, other=0.0)
            v_tile = tl.load(v + key * v_n + kv_head.to(tl.int64) * v_h + d[None, :] * v_d, mask=inside, other=0.0)
            m, l, acc = more_keys(x, k_tile, v_tile, start + n < P, scale, m, l, acc)
        whole = tl.where(l > 0, l, 1.0)
        out = b * Hq + head
        tl.store(v_out + out[:, None] * D + d[None, :], acc / whole[:, None], mask=ok)
        tl.store(s_out + out, (m + tl.log(whole)) * LOG2E, mask=row < rows)


@triton.jit
def pages_kernel(q, kv, indices, v_out, s_out, pages, last, page_size, rows, Hq, G, D, scale, q_b, q_h, q_d, kv_p, kv_2,
                 kv_n, kv_h, kv_d, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """Requests that share one run of pages: `pages` entries of indices, `last` keys in the last of them."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    kv_head = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, WIDE)
    ok = (row < rows)[:, None] & (d < D)[None, :]
    b = (row // G).to(tl.int64)
    head = kv_head * G + row % G
    x = tl.load(q + (b * q_b + head * q_h)[:, None] + d[None, :] * q_d, mask=ok, other=0.0)
    m = tl.full([ROWS], float("-inf"), tl.float32)
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, WIDE], tl.float32)
    j = 0
    while j < pages:
        held = page_size
        if j == pages - 1:
            held = last
        base = kv + tl.load(indices + j).to(tl.int64) * kv_p + kv_head * kv_h
        keys = tl.make_block_ptr(base, (held, D), (kv_n, kv_d), (0, 0), (KEYS, WIDE), (1, 0))
        values = tl.make_block_ptr(base + kv_2, (held, D), (kv_n, kv_d), (0, 0), (KEYS, WIDE), (1, 0))
        for slot in range(0, held, KEYS):
            k_tile = tl.load(keys, boundary_check=(0, 1), padding_option="zero")
            v_tile = tl.load(values, boundary_check=(0, 1), padding_option="zero")
            m, l, acc = more_keys(x, k_tile, v_tile, slot + tl.arange(0, KEYS) < held, scale, m, l, acc)
            keys = tl.advance(keys, (KEYS, 0))
            values = tl.advance(values, (KEYS, 0))
        j += 1
    whole = tl.where(l > 0, l, 1.0)
    out = b * Hq + head
    tl.store(v_out + out[:, None] * D + d[None, :], acc / whole[:, None], mask=ok)
    tl.store(s_out + out, (m + tl.log(whole)) * LOG2E, mask=row < rows)


@triton.jit
def pour_kernel(v, s, v_more, s_more, v_out, D, WIDE: tl.constexpr):
    """(v_more, s_more) into (v, s) where they stand, both float32; v_out, if given, gets the result in its dtype."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, WIDE)
    a = tl.load(s + row)
    b = tl.load(s_more + row)
    top = tl.maximum(a, b)
    shift = tl.where(top == float("-inf"), 0.0, top)
    w_a = tl.exp2(a - shift)
    w_b = tl.exp2(b - shift)
    whole = tl.where(top == float("-inf"), 1.0, w_a + w_b)
    x = tl.load(v + row * D + d, mask=d < D, other=0.0)
    y = tl.load(v_more + row * D + d, mask=d < D, other=0.0)
    mixed = (x * w_a + y * w_b) / whole
    tl.debug_barrier()
    tl.store(v + row * D + d, mixed, mask=d < D)
    tl.store(s + row, top + tl.log2(whole))
    if v_out is not None:
        tl.store(v_out + row * D + d, mixed.to(v_out.dtype.element_ty), mask=d < D)


def pour(v, s, v_more, s_more, v_out=None):
    B, Hq, D = v.shape
    if B:
        pour_kernel[(B * Hq,)](v, s, v_more, s_more, v_out, D, WIDE=triton.next_power_of_2(D))


def nothing(q):
    v = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    return v, torch.full(q.shape[:2], float("-inf"), dtype=torch.float32, device=q.device)


def tiles(q, rows):
    wide = max(16, triton.next_power_of_2(q.shape[2]))
    return {"ROWS": min(64, max(16, triton.next_power_of_2(rows))), "KEYS": 16, "WIDE": wide}


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    v_out, s_out = nothing(q)
    if B:
        G = Hq // Hkv
        shape = tiles(q, B * G)
        prefix_kernel[(triton.cdiv(B * G, shape["ROWS"]),)](
            q, k, v, v_out, s_out, B * G, P, Hq, Hkv, G, D, D**-0.5 if scale is None else scale,
            *q.stride(), *k.stride(), *v.stride(), **shape,
        )  # fmt: skip
    return v_out, s_out


def attend_run(q, kv_cache, indices, last, scale, v_out, s_out):
    """All of q to one run of pages; v_out and s_out are contiguous."""
    B, Hq, D = q.shape
    Hkv = kv_cache.shape[3]
    G = Hq // Hkv
    shape = tiles(q, B * G)
    pages_kernel[(triton.cdiv(B * G, shape["ROWS"]), Hkv)](
        q, kv_cache, indices, v_out, s_out, indices.shape[0], last, kv_cache.shape[2], B * G, Hq, G, D,
        D**-0.5 if scale is None else scale, *q.stride(), *kv_cache.stride(), **shape,
    )  # fmt: skip


def attend_level(q, kv_cache, group_indptr, indptr, indices, last_page_len, scale):
    v, s = nothing(q)
    indices = indices.contiguous()
    ends, lasts = indptr.tolist(), last_page_len.tolist()
    for g in range(len(lasts)):
        first, end = group_indptr[g], group_indptr[g + 1]
        pages = indices[ends[g] : ends[g + 1]]
        if first < end and pages.shape[0]:
            attend_run(q[first:end], kv_cache, pages, lasts[g], scale, v[first:end], s[first:end])
    return v, s


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    return attend_level(q, kv_cache, list(range(q.shape[0] + 1)), indptr, indices, last_page_len, scale)


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    v, s = attend_paged(q, kv_cache, indptr, indices, last_page_len, scale)
    v_out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    pour(v, s, *attend_shared(q, k_shared, v_shared, scale), v_out)
    return v_out, s


def multi_level_cascade(q, kv_cache, levels, scale=None):
    v, s = nothing(q)
    for group_indptr, indptr, indices, last_page_len in reversed(levels):
        pour(v, s, *attend_level(q, kv_cache, group_indptr.tolist(), indptr, indices, last_page_len, scale))
    return v.to(q.dtype), s
