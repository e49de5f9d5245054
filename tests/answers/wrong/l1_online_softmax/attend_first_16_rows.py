"""One program of 16 rows.

exercise: attend
level: memory
diagnosis: unwritten
"""

import torch
import triton
import triton.language as tl


@triton.jit
def att_kernel(sc_p, v_p, o_p, M, N, D, s_r, s_c, v_n, v_d, ROWS: tl.constexpr, KEYS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    vb = tl.make_block_ptr(
        v_p, shape=(N, D), strides=(v_n, v_d), offsets=(0, 0), block_shape=(KEYS, COLS), order=(1, 0)
    )
    sb = tl.make_block_ptr(
        sc_p,
        shape=(M, N),
        strides=(s_r, s_c),
        offsets=(tl.program_id(0) * ROWS, 0),
        block_shape=(ROWS, KEYS),
        order=(1, 0),
    )
    m = tl.full([ROWS], float("-inf"), tl.float32)
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, N, KEYS):
        t = tl.load(sb, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        t = tl.where((start + tl.arange(0, KEYS) < N)[None, :], t, float("-inf"))
        v = tl.load(vb, boundary_check=(0, 1), padding_option="zero")
        m_new = tl.maximum(m, tl.max(t, 1))
        base = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(t - base[:, None])
        f = tl.exp(m - base)
        l = l * f + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * f[:, None], input_precision="ieee")
        m = m_new
        vb = tl.advance(vb, (KEYS, 0))
        sb = tl.advance(sb, (0, KEYS))
    acc = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    c = tl.arange(0, COLS)
    tl.store(
        o_p + r.to(tl.int64)[:, None] * D + c[None, :],
        acc.to(o_p.dtype.element_ty),
        mask=(r < M)[:, None] & (c < D)[None, :],
    )


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty(M, D, dtype=v.dtype, device=v.device)
    if M and D:
        att_kernel[(1,)](
            scores,
            v,
            o,
            M,
            N,
            D,
            *scores.stride(),
            *v.stride(),
            ROWS=16,
            KEYS=max(16, min(block, 64)),
            COLS=max(16, triton.next_power_of_2(D)),
        )
    return o
