"""Autotune over rows a program, heuristics for even rows, a lambda for the grid, cache hints."""

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"ROWS": 1}, num_warps=1, num_stages=1),
    triton.Config({"ROWS": 4}, num_warps=4, num_stages=3),
]


def even(args):
    return args["N"] % args["BLOCK"] == 0


@triton.autotune(configs=CONFIGS, key=["M", "N"])
@triton.heuristics({"EVEN": even})
@triton.jit
def stats(x_ptr, m_ptr, l_ptr, M, N, sr, sc, BLOCK: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    live = row < M
    m = tl.full([ROWS], float("-inf"), dtype=tl.float32)
    l = tl.zeros([ROWS], dtype=tl.float32)
    for start in tl.range(0, N, BLOCK, num_stages=2):
        col = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, BLOCK), BLOCK), BLOCK)
        at = x_ptr + row[:, None] * sr + col[None, :].to(tl.int64) * sc
        if EVEN:
            x = tl.load(at, mask=live[:, None], other=float("-inf"), eviction_policy="evict_first")
        else:
            x = tl.load(at, mask=live[:, None] & (col < N)[None, :], other=float("-inf"), cache_modifier=".cg")
        x = x.to(tl.float32)
        new = tl.maximum(m, x.max(axis=1))
        ref = tl.where(new > float("-inf"), new, 0.0)
        l = l * tl.exp(m - ref) + tl.exp(x - ref[:, None]).sum(axis=1)
        m = new
    tl.store(m_ptr + row, m, mask=live)
    tl.store(l_ptr + row, l, mask=live)


def softmax_stats(x: torch.Tensor, block: int = 1024):
    M, N = x.shape
    both = x.new_empty((2, M), dtype=torch.float32)
    if M:
        grid = lambda meta: (triton.cdiv(M, meta["ROWS"]),)  # noqa: E731
        stats[grid](
            x, both[0], both[1], M, N, x.stride(0), x.stride(1), BLOCK=min(block, triton.next_power_of_2(max(N, 1)))
        )
    m, l = both
    return m, l


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (1, 2, 4)], key=["N"])
@triton.heuristics(values={"WIDE": lambda a: max(16, min(a["hint"], triton.next_power_of_2(a["N"])))})
@triton.jit
def norm(x_ptr, y_ptr, N, sr, sc, hint, WIDE: tl.constexpr):
    pid = tl.program_id(0)
    x_ptr += pid.to(tl.int64) * sr
    y_ptr += pid.to(tl.int64) * N
    m = tl.full((WIDE,), float("-inf"), tl.float32)
    l = tl.zeros((WIDE,), tl.float32)
    for at in range(0, N, WIDE):
        c = at + tl.arange(0, WIDE)
        x = tl.load(x_ptr + c.to(tl.int64) * sc, mask=c < N, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, x)
        l = tl.where(new == float("-inf"), 0.0, l * tl.exp(m - new) + tl.exp(x - new))
        m = new
    top = tl.max(m, 0)
    dead = top == float("-inf")
    total = tl.sum(tl.where(m == float("-inf"), 0.0, l * tl.exp(m - top)), 0)
    inverse = tl.where(dead, 0.0, 1.0 / total)
    top = tl.where(dead, 0.0, top)
    for at in range(0, N, WIDE):
        c = at + tl.arange(0, WIDE)
        x = tl.load(x_ptr + c.to(tl.int64) * sc, mask=c < N, other=float("-inf"), eviction_policy="evict_last").to(tl.float32)
        tl.store(y_ptr + c, (tl.exp(x - top) * inverse).to(y_ptr.dtype.element_ty), mask=c < N, cache_modifier=".cs")


def softmax(x: torch.Tensor, block: int = 1024):
    M, N = x.shape
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() > 0:
        norm[(M,)](x, y, N, *x.stride(), block)
    return y


@triton.autotune(
    configs=[triton.Config({"COLS": c}, num_warps=4) for c in (32, 128)],
    key=["N", "D"],
    prune_configs_by={"early_config_prune": lambda configs, args, **kw: configs[:1] if args["D"] <= 32 else configs},
)
@triton.jit
def attend_k(s_ptr, v_ptr, o_ptr, M, N, D, s0, s1, v0, v1, BLOCK: tl.constexpr, COLS: tl.constexpr):
    """All columns in a loop, so that a score is read once; a program keeps its weights in registers."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK)
    d = tl.arange(0, COLS)
    s = tl.load(s_ptr + row * s0 + n.to(tl.int64) * s1, mask=n < N, other=float("-inf")).to(tl.float32)
    m = tl.max(s, 0)
    p = tl.exp(s - tl.where(m == float("-inf"), 0.0, m))
    l = tl.sum(p, 0)
    p = p / tl.where(l == 0.0, 1.0, l)
    for first in range(0, D, COLS):
        c = first + d
        ok = (n < N)[:, None] & (c < D)[None, :]
        v = tl.load(v_ptr + n[:, None].to(tl.int64) * v0 + c[None, :] * v1, mask=ok, other=0.0).to(tl.float32)
        o = tl.sum(p[:, None] * v, axis=0)
        tl.store(o_ptr + row * D + c, o.to(o_ptr.dtype.element_ty), mask=c < D)


def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64):
    M, N = scores.shape
    D = v.size(1)
    o = v.new_empty(M, D)
    if M > 0:
        attend_k[(M, 1, 1)](
            scores, v, o, M, N, D, *scores.stride(), *v.stride(), BLOCK=triton.next_power_of_2(max(N, 2))
        )
    return o
