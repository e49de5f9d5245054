"""LSEs in three launches with atomics on ordered bits, split keys and a second kernel, masks without other."""

import torch
import triton
import triton.language as tl

CHUNK = 256
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453


@triton.jit
def ordered(x):
    """Bits of x as an integer that grows with x."""
    bits = x.to(tl.int32, bitcast=True)
    return tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF)


@triton.jit
def from_ordered(bits):
    return tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF).to(tl.float32, bitcast=True)


@triton.jit
def chunk(x, N, by_row, by_col, B: tl.constexpr):
    """The scores of program (chunk, row); what a load leaves undefined is replaced at once."""
    j = tl.program_id(0) * B + tl.arange(0, B)
    e = tl.load(x + tl.program_id(1).to(tl.int64) * by_row + j.to(tl.int64) * by_col, mask=j < N)
    return tl.where(j < N, e.to(tl.float32), float("-inf"))


@triton.jit
def tops_kernel(x, tops, N, by_row, by_col, B: tl.constexpr):
    top = tl.max(chunk(x, N, by_row, by_col, B), axis=0)
    tl.atomic_max(tops + tl.program_id(1), ordered(top))


@triton.jit
def sums_kernel(x, tops, sums, N, by_row, by_col, scale: tl.constexpr, B: tl.constexpr):
    top = from_ordered(tl.load(tops + tl.program_id(1)))
    e = chunk(x, N, by_row, by_col, B)
    if top > float("-inf"):
        tl.atomic_add(sums + tl.program_id(1), tl.sum(tl.exp2((e - top) * scale), axis=0))


@triton.jit
def logs_kernel(tops, sums, out, M, BASE2: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    top = from_ordered(tl.load(tops + i, mask=i < M, other=0))
    total = tl.load(sums + i, mask=i < M, other=1.0)
    total = tl.where(total == 0.0, 1.0, total)
    if BASE2:
        s = top * 1.4426950408889634 + tl.log2(total)
    else:
        s = top + tl.log(total)
    tl.store(out + i, s, mask=i < M)


def log_sums(x, base2):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        tops = torch.full((M,), -2139095041, dtype=torch.int32, device=x.device)  # ordered(-inf)
        sums = torch.zeros(M, dtype=torch.float32, device=x.device)
        if N:
            grid = (triton.cdiv(N, CHUNK), M)
            tops_kernel[grid](x, tops, N, *x.stride(), B=CHUNK)
            sums_kernel[grid](x, tops, sums, N, *x.stride(), scale=LOG2E, B=CHUNK)
        logs_kernel[(triton.cdiv(M, 64),)](tops, sums, out, M, BASE2=base2, B=64)
    return out


def lse(x):
    return log_sums(x, False)


def lse2(x):
    return log_sums(x, True)


@triton.jit
def merge_kernel(oa, la, ob, lb, o, l, S, H, D, oa_by, la_by, ob_by, lb_by, R: tl.constexpr, C: tl.constexpr):
    """grid (blocks of columns, H, blocks of R positions)"""
    i = (tl.program_id(2) * R + tl.arange(0, R)).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.program_id(0) * C + tl.arange(0, C)
    a = tl.load(la + i * la_by[0] + h * la_by[1], mask=i < S, other=float("-inf"))
    b = tl.load(lb + i * lb_by[0] + h * lb_by[1], mask=i < S, other=float("-inf"))
    top = tl.maximum(a, b)
    shift = tl.where(top > float("-inf"), top, 0.0)
    wa, wb = tl.exp(a - shift)[:, None], tl.exp(b - shift)[:, None]
    total = wa + wb
    x = tl.load(oa + i[:, None] * oa_by[0] + h * oa_by[1] + d[None, :] * oa_by[2], mask=(wa > 0) & (d < D)[None, :])
    y = tl.load(ob + i[:, None] * ob_by[0] + h * ob_by[1] + d[None, :] * ob_by[2], mask=(wb > 0) & (d < D)[None, :])
    x, y = tl.where(wa > 0, x.to(tl.float32), 0.0), tl.where(wb > 0, y.to(tl.float32), 0.0)
    r = (wa * x + wb * y) / tl.where(total > 0, total, 1.0)
    at = i * H + h
    tl.store(o + at[:, None] * D + d[None, :], r.to(o.dtype.element_ty), mask=(i < S)[:, None] & (d < D)[None, :])
    tl.store(
        l + at[:, None],
        tl.where(total > 0, top[:, None] + tl.log(total), float("-inf")),
        mask=(i < S)[:, None] & (tl.program_id(0) == 0),
    )


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o, l = torch.empty(S, H, D, dtype=o_a.dtype, device=o_a.device), torch.empty(S, H, device=o_a.device)
    C = min(64, triton.next_power_of_2(D))
    if S:
        merge_kernel[triton.cdiv(D, C), H, triton.cdiv(S, 4)](
            o_a, lse_a, o_b, lse_b, o, l, S, H, D, o_a.stride(), lse_a.stride(), o_b.stride(), lse_b.stride(), R=4, C=C
        )
    return o, l


@triton.jit
def turn_kernel(lse, s, H, T, by_h, by_t, BH: tl.constexpr, BT: tl.constexpr):
    h = tl.program_id(0) * BH + tl.arange(0, BH)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    inside = (h < H)[:, None] & (t < T)[None, :]
    x = tl.load(lse + h[:, None].to(tl.int64) * by_h + t[None, :].to(tl.int64) * by_t, mask=inside)
    x = tl.where(x < float("inf"), x * 1.4426950408889634, float("-inf"))
    turned = tl.permute(x, (1, 0))
    tl.store(s + t[:, None].to(tl.int64) * H + h[None, :], turned, mask=tl.permute(inside, (1, 0)))


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty(T, H, device=lse.device)
    if H and T:
        turn_kernel[triton.cdiv(H, 8), triton.cdiv(T, 32)](lse, s, H, T, *lse.stride(), BH=8, BT=32)
    return s


@triton.jit
def piece_kernel(
    q,
    k,
    v,
    w_m,
    w_l,
    w_o,
    S,
    H,
    L,
    T,
    PIECES,
    scale,
    q_by,
    k_by,
    v_by,
    D: tl.constexpr,
    W: tl.constexpr,
    B: tl.constexpr,
    R: tl.constexpr,
):
    """grid (pieces of all parts, H, blocks of R positions). Workspaces: [pieces, H, S] and [pieces, H, S, W]."""
    n, piece = tl.program_id(0) // PIECES, tl.program_id(0) % PIECES
    h = tl.program_id(1).to(tl.int64)
    i = tl.program_id(2) * R + tl.arange(0, R)
    d = tl.arange(0, W)
    first = n * T + piece * B
    end = tl.minimum(tl.minimum(first + B, (n + 1) * T), L)
    j = (first + tl.arange(0, B)).to(tl.int64)
    x = tl.load(
        q + i[:, None].to(tl.int64) * q_by[0] + h * q_by[1] + d[None, :] * q_by[2],
        mask=(i < S)[:, None] & (d < D)[None, :],
        other=0.0,
    )
    ok = (j < end)[:, None] & (d < D)[None, :]
    y = tl.load(k + j[:, None] * k_by[0] + h * k_by[1] + d[None, :] * k_by[2], mask=ok, other=0.0)
    u = tl.load(v + j[:, None] * v_by[0] + h * v_by[1] + d[None, :] * v_by[2], mask=ok, other=0.0)
    e = tl.dot(x, tl.trans(y), allow_tf32=False) * scale
    e = tl.where((j < end)[None, :], e, float("-inf"))
    m = tl.max(e, 1)
    p = tl.exp2(e - tl.where(m == float("-inf"), 0.0, m)[:, None])
    o = tl.dot(p, u.to(tl.float32), allow_tf32=False)
    at = (tl.program_id(0).to(tl.int64) * H + h) * S + i
    tl.store(w_m + at, m, mask=i < S)
    tl.store(w_l + at, tl.sum(p, 1), mask=i < S)
    tl.store(w_o + at[:, None] * D + d[None, :], o, mask=(i < S)[:, None] & (d < D)[None, :])


@triton.jit
def join_kernel(w_m, w_l, w_o, v_out, s_out, S, N, H, PIECES, D: tl.constexpr, W: tl.constexpr):
    """grid (S, N, H)"""
    i, n, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    d = tl.arange(0, W)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([W], tl.float32)
    for piece in range(PIECES):
        at = (tl.cast(n * PIECES + piece, tl.int64) * H + h) * S + i
        m_p = tl.load(w_m + at)
        new = tl.maximum(m, m_p)
        shift = tl.where(new == float("-inf"), 0.0, new)
        keep, w = tl.exp2(m - shift), tl.exp2(m_p - shift)
        l = l * keep + tl.load(w_l + at) * w
        acc = acc * keep + tl.load(w_o + at * D + d, mask=d < D, other=0.0) * w
        m = new
    l = tl.where(l == 0.0, 1.0, l)
    at = (i.to(tl.int64) * N + n) * H + h
    tl.store(v_out + at * D + d, acc / l, mask=d < D)
    tl.store(s_out + at, m + tl.log2(l))


def partial_states(q, k, v, num_splits, scale=None):
    (S, H, D), L = q.shape, k.shape[0]
    empty = lambda *shape: torch.empty(shape, dtype=torch.float32, device=q.device)  # noqa: E731
    v_out, s_out = empty(S, num_splits, H, D), empty(S, num_splits, H)
    if S:
        T, B, W = triton.cdiv(L, num_splits), 32, max(16, triton.next_power_of_2(D))
        pieces = max(1, triton.cdiv(T, B))
        w_m, w_l, w_o = (
            empty(num_splits * pieces, H, S),
            empty(num_splits * pieces, H, S),
            empty(num_splits * pieces, H, S, D),
        )
        scale = (D**-0.5 if scale is None else scale) * LOG2E
        piece_kernel[num_splits * pieces, H, triton.cdiv(S, 16)](
            q,
            k,
            v,
            w_m,
            w_l,
            w_o,
            S,
            H,
            L,
            T,
            pieces,
            scale,
            q.stride(),
            k.stride(),
            v.stride(),
            D=D,
            W=W,
            B=B,
            R=16,
            num_stages=1,
        )
        join_kernel[S, num_splits, H](w_m, w_l, w_o, v_out, s_out, S, num_splits, H, pieces, D=D, W=W)
    return v_out, s_out
