"""q is handed back for every part, and s = 0.

exercise: partial_states
level: value
diagnosis: not_triton
"""

import torch


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    v_out = q.float()[:, None].expand(S, num_splits, H, D).contiguous()
    return v_out, torch.zeros((S, num_splits, H), dtype=torch.float32, device=q.device)
