"""Without a prefix nothing is launched; keys by slot numbers from torch's index arithmetic; runs listed in Python."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def prefix_kernel(q, kk, v, vo, so, scale, P, Hkv: tl.constexpr, G: tl.constexpr, ROWS, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """q is [Hkv, B * G, D], contiguous."""
    h = tl.program_id(0)
    r0 = tl.program_id(1) * BM
    qb = tl.make_block_ptr(q + h * ROWS * D, (ROWS, D), (D, 1), (r0, 0), (BM, D), (1, 0))
    kb = tl.make_block_ptr(kk + h * D, (D, P), (1, Hkv * D), (0, 0), (D, BN), (0, 1))
    vb = tl.make_block_ptr(v + h * D, (P, D), (Hkv * D, 1), (0, 0), (BN, D), (1, 0))
    x = tl.load(qb, boundary_check=(0,), padding_option="zero")
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.full((BM,), 0.0, tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for n0 in range(0, P, BN):
        kt = tl.load(kb, boundary_check=(1,), padding_option="zero")
        y = tl.load(vb, boundary_check=(0,), padding_option="zero")
        sc = tl.dot(x, kt, input_precision="ieee") * scale
        sc += tl.where(n0 + tl.arange(0, BN) < P, 0.0, float("-inf"))[None, :]
        new = tl.maximum(m, tl.max(sc, 1))
        p = tl.exp2(sc - new[:, None])
        a = tl.exp2(m - new)
        l = l * a + tl.sum(p, 1)
        acc *= a[:, None]
        acc += tl.dot(p.to(v.dtype.element_ty), y, input_precision="ieee")
        m = new
        kb = kb.advance((0, BN))
        vb = vb.advance((BN, 0))
    acc /= l[:, None]
    ob = tl.make_block_ptr(vo, (Hkv, ROWS, D), (ROWS * D, D, 1), (h, r0, 0), (1, BM, D), (2, 1, 0))
    tl.store(ob, acc.reshape(1, BM, D), boundary_check=(1,))
    sb = tl.make_block_ptr(so + h * ROWS, (ROWS,), (1,), (r0,), (BM,), (0,))
    tl.store(sb, m + tl.log2(l), boundary_check=(0,))


def attend_shared(q, k_, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k_.shape
    G = Hq // Hkv
    if P == 0:
        return q.new_zeros(B, Hq, D, dtype=torch.float32), torch.full((B, Hq), float("-inf"), device=q.device)
    scale = (D**-0.5 if scale is None else scale) * LOG2E
    pad = max(16, triton.next_power_of_2(D)) - D
    rows = q.reshape(B, Hkv, G, D).permute(1, 0, 2, 3).reshape(Hkv, B * G, D)
    rows, k_, v = (torch.nn.functional.pad(t, (0, pad)) if pad else t.contiguous() for t in (rows, k_, v))
    vo = torch.empty(Hkv, B * G, D + pad, device=q.device, dtype=torch.float32)
    so = torch.empty(Hkv, B * G, device=q.device, dtype=torch.float32)
    if B:
        prefix_kernel[(Hkv, triton.cdiv(B * G, 64))](rows, k_, v, vo, so, scale, P, Hkv, G, B * G, D + pad, 64, 16)
    vo = vo.view(Hkv, B, G, D + pad)[..., :D].transpose(0, 1).reshape(B, Hq, D)
    so = so.view(Hkv, B, G).transpose(0, 1).reshape(B, Hq)
    return vo, so


@triton.jit
def slots_kernel(q, kv, slots, first, vo, so, scale, q0, q1, q2, c0, c1, c2, c3, c4, page_size, Hq: tl.constexpr, Hkv: tl.constexpr, D: tl.constexpr, G2: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    G: tl.constexpr = Hq // Hkv
    g = tl.program_id(2) * G2 + tl.arange(0, G2)
    d = tl.arange(0, BD).to(tl.int64)
    lo, hi = tl.load(first + b), tl.load(first + b + 1)
    x = tl.load(q + b.to(tl.int64) * q0 + (h * G + g)[:, None].to(tl.int64) * q1 + d[None, :] * q2, mask=(g[:, None] < G) & (d[None, :] < D), other=0.0).to(tl.float32)
    m = tl.full((G2,), float("-inf"), tl.float32)
    l = tl.zeros((G2,), tl.float32)
    acc = tl.zeros((G2, BD), tl.float32)
    n = lo
    while n < hi:
        at = n + tl.arange(0, BN)
        ok = at < hi
        slot = tl.load(slots + at, mask=ok, other=0)
        page, within = slot // page_size, slot % page_size
        kp = kv + (page * c0 + within * c2 + h.to(tl.int64) * c3)[:, None] + d[None, :] * c4
        y = tl.load(kp, mask=ok[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        z = tl.load(kp + c1, mask=ok[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        sc = tl.sum(x[:, None, :] * y[None, :, :], axis=2) * scale
        sc = tl.where(ok[None, :], sc, float("-inf"))
        new = tl.maximum(m, tl.max(sc, 1))
        p = tl.exp2(sc - new[:, None])
        a = tl.exp2(m - new)
        l = l * a + tl.sum(p, 1)
        acc = acc * a[:, None] + tl.sum(p[:, :, None] * z[None, :, :], axis=1)
        m = new
        n += BN
    one = tl.where(l > 0, l, 1.0)
    row = b.to(tl.int64) * Hq + h * G + g
    tl.store(so + row, m + tl.log2(one), mask=g < G)
    tl.store(vo + row[:, None] * D + d[None, :], acc / one[:, None], mask=(g < G)[:, None] & (d < D)[None, :])


def slots_of(indptr, indices, last_page_len, page_size):
    pages = indptr[1:] - indptr[:-1]
    lengths = torch.where(pages > 0, (pages - 1) * page_size + last_page_len, 0)
    first = torch.zeros(len(indptr), dtype=torch.int64, device=indptr.device)
    first[1:] = torch.cumsum(lengths, 0)
    total = int(first[-1])
    owner = torch.repeat_interleave(torch.arange(len(pages), device=indptr.device), lengths)
    within = torch.arange(total, device=indptr.device) - first[owner]
    page = indices[indptr[owner].long() + within // page_size].long()
    return page * page_size + within % page_size, first


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    B, Hq, D = q.shape
    Hkv = kv_cache.shape[3]
    vo = torch.zeros(B, Hq, D, device=q.device)
    so = torch.full((B, Hq), -float("inf"), device=q.device)
    if B == 0:
        return vo, so
    slots, first = slots_of(indptr, indices, last_page_len, kv_cache.shape[2])
    scale = (D**-0.5 if scale is None else scale) * LOG2E
    rows = min(8, triton.next_power_of_2(Hq // Hkv))  # of 16 and more, Triton makes a product of the sum, in TF32
    slots_kernel[(B, Hkv, triton.cdiv(Hq // Hkv, rows))](q, kv_cache, slots, first, vo, so, scale, *q.stride(), *kv_cache.stride(), kv_cache.shape[2], Hq, Hkv, D, rows, 16, triton.next_power_of_2(D))
    return vo, so


@triton.jit
def both_kernel(v1, s1, v2, s2, vo, so, n, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d = tl.arange(0, C)
    a = tl.load(s1 + r, mask=r < n, other=float("-inf"))
    b = tl.load(s2 + r, mask=r < n, other=float("-inf"))
    hi = tl.maximum(a, b)
    z = tl.where(hi == float("-inf"), 0.0, hi)
    x, y = tl.exp2(a - z), tl.exp2(b - z)
    t = tl.where(x + y > 0, x + y, 1.0)
    at = r[:, None] * D + d[None, :]
    ok = (r < n)[:, None] & (d < D)[None, :]
    va = tl.load(v1 + at, mask=ok, other=0.0)
    vb = tl.load(v2 + at, mask=ok, other=0.0)
    tl.store(vo + at, ((va * x[:, None] + vb * y[:, None]) / t[:, None]).to(vo.dtype.element_ty), mask=ok)
    tl.store(so + r, hi + tl.log2(t), mask=r < n)


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    B, Hq, D = q.shape
    v, s = q.new_empty(B, Hq, D), torch.empty(B, Hq, dtype=torch.float32, device=q.device)
    if B == 0:
        return v, s
    one = attend_shared(q, k_shared, v_shared, scale)
    other = attend_paged(q, kv_cache, indptr, indices, last_page_len, scale)
    states = [t.contiguous() for t in (*one, *other)]
    both_kernel[(triton.cdiv(B * Hq, 4),)](*states, v, s, B * Hq, D, 4, triton.next_power_of_2(D))
    return v, s


@triton.jit
def run_kernel(q, kv, request, page_list, start, stop, length, vo, so, scale, Hq, G, page_size: tl.constexpr, q0, q1, q2, c0, c1, c2, c3, c4, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    w = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    b = tl.load(request + w).to(tl.int64)
    lo = tl.load(start + w)
    n_keys = tl.load(length + w)
    d = tl.arange(0, BD).to(tl.int64)
    x = tl.load(q + b * q0 + h * q1 + d * q2, mask=d < D, other=0.0).to(tl.float32) * scale
    m = float("-inf")
    l = 0.0
    acc = tl.zeros((BD,), tl.float32)
    for n0 in range(0, n_keys, BN):
        n = n0 + tl.arange(0, BN)
        ok = n < n_keys
        page = tl.load(page_list + lo + n // page_size, mask=ok, other=0).to(tl.int64)
        at = kv + (page * c0 + (n % page_size).to(tl.int64) * c2 + (h // G) * c3)[:, None] + (d * c4)[None, :]
        both = ok[:, None] & (d < D)[None, :]
        y = tl.load(at, mask=both, other=0.0).to(tl.float32)
        s = tl.where(ok, tl.sum(y * x[None, :], 1), float("-inf"))
        new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp2(s - new)
        a = tl.exp2(m - new)
        z = tl.load(at + c1, mask=both, other=0.0).to(tl.float32)
        acc = acc * a + tl.sum(z * p[:, None], 0)
        l = l * a + tl.sum(p, 0)
        m = new
    row = w.to(tl.int64) * Hq + h
    tl.store(vo + row * D + d, acc / l, mask=d < D)
    tl.store(so + row, m + tl.log2(l))


@triton.jit
def runs_merged(v, s, runs, vo, so, Hq, D: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BD)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros((BD,), tl.float32)
    for w in range(tl.load(runs + b), tl.load(runs + b + 1)):
        row = w.to(tl.int64) * Hq + h
        x = tl.load(s + row)
        new = tl.maximum(m, x)
        a = tl.exp2(m - new)
        p = tl.exp2(x - new)
        acc = acc * a + p * tl.load(v + row * D + d, mask=d < D, other=0.0)
        l = l * a + p
        m = new
    one = tl.where(l > 0, l, 1.0)
    tl.store(vo + (b * Hq + h) * D + d, (acc / one).to(vo.dtype.element_ty), mask=d < D)
    tl.store(so + b * Hq + h, m + tl.log2(one))


def multi_level_cascade(q, kv_cache, levels, scale=None):
    B, Hq, D = q.shape
    page_size, Hkv = kv_cache.shape[2:4]
    work = [[] for _ in range(B)]
    pages = []
    for group_indptr, kv_indptr, kv_indices, kv_last in levels:
        groups, ptr, last = group_indptr.tolist(), kv_indptr.tolist(), kv_last.tolist()
        base = sum(map(len, pages))
        pages.append(kv_indices.to(torch.int32))
        for g, (a, b) in enumerate(zip(groups, groups[1:])):
            n = ptr[g + 1] - ptr[g]
            if n:
                for r in range(a, b):
                    work[r].append((base + ptr[g], (n - 1) * page_size + last[g]))
    vo = torch.empty(B, Hq, D, dtype=q.dtype, device=q.device)
    so = torch.empty(B, Hq, dtype=torch.float32, device=q.device)
    if B == 0:
        return vo, so
    runs, request, start, length = [0], [], [], []
    for r, items in enumerate(work):
        for a, n in items:
            request.append(r), start.append(a), length.append(n)
        runs.append(len(request))
    as_int = lambda x: torch.as_tensor(x, dtype=torch.int32, device=q.device)
    v = torch.empty(len(request), Hq, D, device=q.device)
    s = torch.empty(len(request), Hq, device=q.device)
    if request:
        run_kernel[(len(request), Hq)](q, kv_cache, as_int(request), torch.cat(pages), as_int(start), as_int(start), as_int(length), v, s, (D**-0.5 if scale is None else scale) * LOG2E, Hq, Hq // Hkv, page_size, *q.stride(), *kv_cache.stride(), D, 16, triton.next_power_of_2(D))
    runs_merged[(B, Hq)](v, s, as_int(runs), vo, so, Hq, D, triton.next_power_of_2(D))
    return vo, so
