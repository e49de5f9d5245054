"""Three-axis grids that divmod one index, tl.associative_scan over triples, a copy transposed by the host, keyword launches."""

import torch
import triton
import triton.language as tl


@triton.jit
def both(m_a, l_a, x_a, m_b, l_b, x_b):
    """Triples (m, l, sum of weighted values) as one."""
    m = tl.maximum(m_a, m_b)
    a = tl.where(m_a == m, 1.0, tl.exp(m_a - m))
    b = tl.where(m_b == m, 1.0, tl.exp(m_b - m))
    return m, l_a * a + l_b * b, x_a * a + x_b * b


@triton.jit
def last_of(x, COUNT: tl.constexpr, NEUTRAL: tl.constexpr):
    """The last row of a block."""
    n = tl.arange(0, COUNT)[:, None]
    return tl.max(tl.where(n == COUNT - 1, x, NEUTRAL), 0)


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, o_ptr, scale,
    H, L, N, T, D: tl.constexpr, COUNT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """k and v come heads first, [H, L, D]. A key is a triple of its own, and a block of them is scanned."""
    index = tl.program_id(0)
    n, h = index // H, (index % H).to(tl.int64)
    d = tl.arange(0, WIDE)
    q = tl.load(q_ptr + h * D + d, mask=d < D, other=0.0).to(tl.float32)
    end = tl.minimum((n + 1) * T, L)
    m = tl.full((WIDE,), float("-inf"), tl.float32)
    l = tl.zeros((WIDE,), tl.float32)
    x = tl.zeros((WIDE,), tl.float32)
    for start in range(n * T, end, COUNT):
        key = start + tl.arange(0, COUNT)
        ok = (key < end)[:, None] & (d < D)[None, :]
        at = (h * L + key)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=ok, other=0.0).to(tl.float32)
        score = tl.where(key < end, tl.sum(k * q[None, :], 1) * scale, float("-inf"))
        score = tl.broadcast_to(score[:, None], (COUNT, WIDE))
        one = tl.where(score == float("-inf"), 0.0, 1.0)
        m_n, l_n, x_n = tl.associative_scan((score, one, v * one), 0, both)
        x_last = tl.sum(tl.where(tl.arange(0, COUNT)[:, None] == COUNT - 1, x_n, 0.0), 0)
        m, l, x = both(m, l, x, last_of(m_n, COUNT, float("-inf")), last_of(l_n, COUNT, 0.0), x_last)
    row = n.to(tl.int64) * H + h
    tl.store(o_ptr + row * D + d, x / tl.where(l > 0, l, 1.0), mask=d < D)
    tl.store(m_ptr + row, tl.max(m, 0))
    tl.store(l_ptr + row, tl.max(l, 0))


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    new = dict(device=q.device, dtype=torch.float32)
    m, l = (torch.empty(num_splits, H, **new) for _ in range(2))
    o = torch.empty(num_splits, H, D, **new)
    part_kernel[(num_splits * H,)](
        q_ptr=q.contiguous(), k_ptr=k.transpose(0, 1).contiguous(), v_ptr=v.transpose(0, 1).contiguous(),
        m_ptr=m, l_ptr=l, o_ptr=o, scale=scale if scale is not None else D**-0.5,
        H=H, L=L, N=num_splits, T=-(-L // num_splits), D=D, COUNT=4, WIDE=triton.next_power_of_2(D), num_warps=1,
    )  # fmt: skip
    return m, l, o


@triton.jit
def merge_kernel(m_ptr, l_ptr, o_ptr, m_out, l_out, o_out, N, H, D, ALL: tl.constexpr, COUNT: tl.constexpr):
    """A program an element of [H, D]: its triples over the parts, scanned too. ALL: m and l are wanted as well."""
    index = tl.program_id(0).to(tl.int64)
    h, d = index // D, index % D
    m = float("-inf")
    l = 0.0
    x = 0.0
    for start in range(0, N, COUNT):
        n = start + tl.arange(0, COUNT)
        m_n = tl.load(m_ptr + n * H + h, mask=n < N, other=float("-inf"))
        l_n = tl.load(l_ptr + n * H + h, mask=n < N, other=0.0)
        o_n = tl.load(o_ptr + (n * H + h) * D + d, mask=(n < N) & (m_n > float("-inf")), other=0.0).to(tl.float32)
        m_b, l_b, x_b = tl.reduce((m_n, l_n, o_n * l_n), 0, both)
        m, l, x = both(m, l, x, m_b, l_b, x_b)
    tl.store(o_out + index, (x / tl.where(l > 0, l, 1.0)).to(o_out.dtype.element_ty))
    if ALL:
        if d == 0:
            tl.store(m_out + h, m)
            tl.store(l_out + h, l)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.zeros(H, D, dtype=o.dtype, device=o.device)
    if out.numel() and N:
        m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
        merge_kernel[(H * D,)](m, l, o, m, l, out, N, H, D, ALL=False, COUNT=16)
    return out


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m, l = torch.empty(H, device=o_a.device), torch.empty(H, device=o_a.device)
    o = torch.empty(H, D, dtype=o_a.dtype, device=o_a.device)
    if H:
        parts = [torch.stack(two) for two in ((m_a, m_b), (l_a, l_b), (o_a, o_b))]
        merge_kernel[(H * D,)](*parts, m, l, o, 2, H, D, ALL=True, COUNT=2)
    return m, l, o
