"""Tensor descriptors where rows allow, hints (tl.assume, tl.multiple_of), a state as a tuple, programs that take tiles."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634
WORKERS = 6


@triton.jit
def opened(LIKE: tl.constexpr, WIDE: tl.constexpr):
    """A state that has seen nothing: m, l, acc."""
    acc = tl.zeros([LIKE, WIDE], tl.float32)
    return tl.full([LIKE], float("-inf"), tl.float32), tl.zeros([LIKE], tl.float32), acc


@triton.jit
def seen(state, q, k, v, live, scale):
    m, l, acc = state
    s = tl.where(live[None, :], tl.dot(q, k.T, input_precision="ieee") * scale, float("-inf"))
    m_new = tl.maximum(m, tl.max(s, 1))
    shift = tl.where(m_new == float("-inf"), tl.zeros_like(m_new), m_new)
    p = tl.exp2(s - tl.expand_dims(shift, 1))
    keep = tl.exp2(m - shift)
    acc = tl.dot(p.to(v.dtype), v, acc=acc * tl.expand_dims(keep, 1), input_precision="ieee")
    return m_new, tl.fma(l, keep, tl.sum(p, 1)), acc


@triton.jit
def closed(state):
    m, l, acc = state
    some = l > 0
    l = tl.where(some, l, tl.full(l.shape, 1.0, tl.float32))
    return acc / l.expand_dims(1), tl.where(some, m + tl.log2(l), float("-inf"))


@triton.jit
def shared_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, s_ptr, scale, B, P, HQ, HKV, tiles, q_b, q_h, q_d, k_n, k_h, k_d, v_n, v_h, v_d,
    DESCRIBED: tl.constexpr, G: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Programs take tiles, KV head by KV head and block by block of rows, until there is none left."""
    tl.static_assert(WIDE >= D)
    tl.assume(P > 0)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        kv_head = (tile % HKV).to(tl.int64)
        row = tile // HKV * ROWS + tl.arange(0, ROWS)
        d = tl.max_contiguous(tl.multiple_of(tl.arange(0, WIDE), WIDE), WIDE)
        wide = d.to(tl.int64)[None, :]
        request, head = (row // G).to(tl.int64), kv_head * G + row % G
        ok = (row < B * G)[:, None] & (d < D)[None, :]
        q = tl.load(q_ptr + (request * q_b + head * q_h)[:, None] + wide * q_d, mask=ok, other=0.0)
        state = opened(ROWS, WIDE)
        if DESCRIBED:
            k_rows = tl.make_tensor_descriptor(k_ptr + kv_head * k_h, [P, D], [k_n, 1], [KEYS, WIDE])
            v_rows = tl.make_tensor_descriptor(v_ptr + kv_head * v_h, [P, D], [v_n, 1], [KEYS, WIDE])
            for start in range(0, P, KEYS):
                live = start + tl.arange(0, KEYS) < P
                state = seen(state, q, k_rows.load([start, 0]), v_rows.load([start, 0]), live, scale)
        else:
            for start in range(0, P, KEYS):
                key = (start + tl.arange(0, KEYS)).to(tl.int64)
                both = (key < P)[:, None] & (d < D)[None, :]
                k = tl.load(k_ptr + key[:, None] * k_n + kv_head * k_h + wide * k_d, mask=both, other=0.0)
                v = tl.load(v_ptr + key[:, None] * v_n + kv_head * v_h + wide * v_d, mask=both, other=0.0)
                state = seen(state, q, k, v, key < P, scale)
        o, s = closed(state)
        out = request * HQ + head
        tl.store(o_ptr + out[:, None] * D + d[None, :], o, mask=ok)
        tl.store(s_ptr + out, s, mask=row < B * G)


def allocate(size, alignment, stream):
    """Where descriptors are kept on a GPU."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def describes(*tensors):
    """Whether descriptors take these: rows of whole 16 bytes, columns side by side."""

    def fits(x):
        unit = 16 // x.element_size()
        return x.stride(2) == 1 and x.data_ptr() % 16 == 0 and x.stride(0) % unit == 0 and x.stride(1) % unit == 0

    return all(fits(x) and x.stride(0) > 0 for x in tensors)


def empty_states(q):
    v = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    return v, torch.full(q.shape[:2], float("-inf"), dtype=torch.float32, device=q.device)


def base_2(q, scale):
    return LOG2E * (q.shape[-1] ** -0.5 if scale is None else scale)


def attend_shared(q, k, v, scale=None):
    (B, HQ, D), (P, HKV) = q.shape, k.shape[:2]
    o, s = empty_states(q)
    if B and P:
        group = HQ // HKV
        wide = max(16, triton.next_power_of_2(D))
        rows = 16 if B * group <= 16 or wide > 128 else 64
        tiles = triton.cdiv(B * group, rows) * HKV
        described = describes(k, v)
        if described and k.is_cuda:
            triton.set_allocator(allocate)
        shared_kernel[(min(tiles, WORKERS),)](
            q, k, v, o, s, base_2(q, scale), B, P, HQ, HKV, tiles, *q.stride(), *k.stride(), *v.stride(),
            DESCRIBED=described, G=group, D=D, ROWS=rows, KEYS=16, WIDE=wide, num_warps=8 if wide > 128 else 4,
        )  # fmt: skip
    return o, s


@triton.jit
def paged_kernel(
    q_ptr, kv_ptr, o_ptr, s_ptr, group_ptr, indptr_ptr, indices_ptr, last_ptr, scale, HQ, PAGE,
    q_b, q_h, q_d, kv_p, kv_2, kv_n, kv_h, kv_d,
    G: tl.constexpr, D: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Program (KV head, request). group_ptr[request]: whose pages it reads, -1 for nobody's."""
    kv_head, request = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    group = tl.load(group_ptr + request)
    if group >= 0:
        begin = tl.load(indptr_ptr + group).to(tl.int64)
        pages = tl.load(indptr_ptr + group + 1).to(tl.int64) - begin
        if pages > 0:
            length = (pages - 1) * PAGE + tl.load(last_ptr + group).to(tl.int64)
            row = tl.arange(0, max(16, triton.next_power_of_2(G)))
            d = tl.arange(0, WIDE)
            wide = d.to(tl.int64)[None, :]
            head = kv_head * G + row
            ok = (row < G)[:, None] & (d < D)[None, :]
            q = tl.load(q_ptr + request * q_b + head[:, None] * q_h + wide * q_d, mask=ok, other=0.0)
            state = opened(row.shape[0], WIDE)
            for start in range(0, length, KEYS):
                key = start + tl.arange(0, KEYS)
                live = key < length
                page = tl.load(indices_ptr + begin + key // PAGE, mask=live, other=0).to(tl.int64)
                at = (page * kv_p + key % PAGE * kv_n + kv_head * kv_h)[:, None] + wide * kv_d
                both = live[:, None] & (d < D)[None, :]
                k = tl.load(kv_ptr + at, mask=both, other=0.0)
                state = seen(state, q, k, tl.load(kv_ptr + kv_2 + at, mask=both, other=0.0), live, scale)
            o, s = closed(state)
            out = request * HQ + head
            tl.store(o_ptr + out[:, None] * D + d[None, :], o, mask=ok)
            tl.store(s_ptr + out, s, mask=row < G)


def attend_table(q, kv_cache, groups, indptr, indices, last_page_len, scale):
    (B, HQ, D), HKV = q.shape, kv_cache.shape[3]
    o, s = empty_states(q)
    if B and indptr.shape[0] > 1:
        paged_kernel[(HKV, B)](
            q, kv_cache, o, s, groups, indptr.contiguous(), indices.contiguous(), last_page_len.contiguous(),
            base_2(q, scale), HQ, kv_cache.shape[2], *q.stride(), *kv_cache.stride(),
            G=HQ // HKV, D=D, KEYS=16, WIDE=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return o, s


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    everyone = torch.arange(q.shape[0], device=q.device)
    return attend_table(q, kv_cache, everyone, indptr, indices, last_page_len, scale)


@triton.jit
def merge_kernel(v_ptr, s_ptr, o_ptr, out_s_ptr, rows, N, D, COUNT: tl.constexpr, WIDE: tl.constexpr):
    """All N states of a row at once, from v[N, rows, D] and s[N, rows]."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, COUNT)
    d = tl.arange(0, WIDE)
    at = n * rows + row
    s = tl.load(s_ptr + at, mask=n < N, other=float("-inf"))
    m = tl.max(s, 0)
    w = tl.exp2(s - tl.where(m == float("-inf"), 0.0, m))
    total = tl.sum(w, 0)
    v = tl.load(v_ptr + at[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
    safe = tl.where(total > 0, total, 1.0)
    o = tl.sum(v * (w / safe)[:, None], 0)
    tl.store(o_ptr + row * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)
    tl.store(out_s_ptr + row, tl.where(total > 0, m + tl.log2(safe), float("-inf")))


def merged(states, q):
    v, s = (torch.stack(many) for many in zip(*states, strict=True))
    out, out_s = torch.empty(q.shape, dtype=q.dtype, device=q.device), s.new_empty(s.shape[1:])
    if out_s.numel():
        N, D = len(s), q.shape[-1]
        merge_kernel[(out_s.numel(),)](
            v, s, out, out_s, out_s.numel(), N, D, COUNT=triton.next_power_of_2(max(2, N)), WIDE=triton.next_power_of_2(D)
        )
    return out, out_s


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    own = attend_paged(q, kv_cache, indptr, indices, last_page_len, scale)
    return merged([attend_shared(q, k_shared, v_shared, scale), own], q)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    states = [empty_states(q)]
    for owns, indptr, indices, last_page_len in levels:
        groups = torch.full((q.shape[0],), -1, dtype=torch.int64, device=q.device)
        for group, (begin, end) in enumerate(zip(owns.tolist()[:-1], owns.tolist()[1:], strict=True)):
            groups[begin:end] = group
        states.append(attend_table(q, kv_cache, groups, indptr, indices, last_page_len, scale))
    return merged(states, q)
