"""Lesson 2: FlashDecoding's triple.

One query leaves most of a GPU idle, so its keys are split into parts that run side by side. A part leaves behind
m (its largest score), l (its sum of exp(score - m)) and o (its own attention output, normalized), and these merge.
A part with no keys has m = -inf, l = 0, o = 0. In a merge it weighs nothing, whatever its o holds, NaN included.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["H", "L", "T"])
def partial_attention_kernel(
    q_ptr,  # [H, D] contiguous
    k_ptr,  # [L, H, D] with the strides below
    v_ptr,  # [L, H, D] with the strides below
    m_ptr,  # [N, H] float32, result
    l_ptr,  # [N, H] float32, result
    o_ptr,  # [N, H, D] float32, result
    H,
    L,
    T,  # keys a part
    scale,
    stride_kl, stride_kh, stride_kd,  # elements from one key, head, column of k to the next
    stride_vl, stride_vh, stride_vd,  # the same for v
    D: tl.constexpr,
    BLOCK_L: tl.constexpr,  # keys a step
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    pass


def partial_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention of one query over num_splits parts of the keys, each part by itself.

    q: [H, D], k and v: [L, H, D], float16, bfloat16 or float32, any strides. scale: 1/sqrt(D) if None.
    Part n covers keys n * T to min((n + 1) * T, L), T = ceil(L / num_splits). Scores are q . k * scale.
    Returns m [N, H], l [N, H], o [N, H, D], all float32, N = num_splits: the part's largest score, its sum of
    exp(score - m), its normalized output. A part with no keys gives (-inf, 0, 0).
    At least N * H programs run. Traffic: one read of k and v will do; more than twice the least fails.
    """
    raise NotImplementedError("partial_attention: your turn")


@triton.jit(do_not_specialize=["H"])
def merge_pair_kernel(
    m_a_ptr, l_a_ptr,  # [H] float32
    o_a_ptr,  # [H, D]
    m_b_ptr, l_b_ptr,  # [H] float32
    o_b_ptr,  # [H, D]
    m_ptr, l_ptr,  # [H] float32, results
    o_ptr,  # [H, D] result
    H,
    D: tl.constexpr,
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    pass


def merge_pair(
    m_a: torch.Tensor, l_a: torch.Tensor, o_a: torch.Tensor, m_b: torch.Tensor, l_b: torch.Tensor, o_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Merges two parts of every head into one. A tree of these equals merge_mlo.

    m_a, l_a, m_b, l_b: [H] float32. o_a, o_b: [H, D] float16, bfloat16 or float32, normalized. Any strides.
    Returns m [H], l [H] float32 and o [H, D] in o_a's dtype, normalized. Two empty parts give (-inf, 0, 0).
    """
    raise NotImplementedError("merge_pair: your turn")


@triton.jit(do_not_specialize=["N", "H"])
def merge_mlo_kernel(
    m_n_ptr,  # [N, H] float32
    l_n_ptr,  # [N, H] float32
    o_n_ptr,  # [N, H, D]
    o_ptr,  # [H, D] result
    N,
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # parts a step
    BLOCK_D: tl.constexpr,  # columns a program
):
    pass


def merge_mlo(m: torch.Tensor, l: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    """Merges the N parts of every head at once: the weight of part n is exp(m_n - max m) * l_n.

    m, l: [N, H] float32. o: [N, H, D] float16, bfloat16 or float32, normalized inside its part. Any strides, any N.
    Returns o [H, D] in o's dtype. No parts, or only empty ones, give 0.
    """
    raise NotImplementedError("merge_mlo: your turn")
