"""q is handed back for every part.

exercise: partial_attention
level: value
diagnosis: not_triton
"""

import torch


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    m = torch.zeros((num_splits, H), dtype=torch.float32, device=q.device)
    return m, m.clone(), q.float().expand(num_splits, H, D).clone()
