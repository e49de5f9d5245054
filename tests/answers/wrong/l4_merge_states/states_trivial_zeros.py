"""Every result is zeros.

exercise: merge_states
level: value
diagnosis: not_triton
"""

import torch


def merge_states(v, s):
    S, H = (v.shape[0], v.shape[2])
    v_out = torch.full((S, H, v.shape[-1]), 0.0, dtype=v.dtype, device=v.device)
    return v_out, torch.full((S, H), 0.0, dtype=torch.float32, device=v.device)
