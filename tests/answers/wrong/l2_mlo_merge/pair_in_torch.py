"""The formula in torch, no kernel.

exercise: merge_pair
level: value
diagnosis: not_triton
"""

import torch


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    m = torch.maximum(m_a, m_b)
    shift = torch.where(m == float("-inf"), 0.0, m)
    w_a = torch.exp(m_a - shift) * l_a
    w_b = torch.exp(m_b - shift) * l_b
    l = w_a + w_b
    a = torch.where(w_a[:, None] > 0, o_a.float(), 0.0) * w_a[:, None]
    b = torch.where(w_b[:, None] > 0, o_b.float(), 0.0) * w_b[:, None]
    return m, l, ((a + b) / torch.where(l > 0, l, 1.0)[:, None]).to(o_a.dtype)
