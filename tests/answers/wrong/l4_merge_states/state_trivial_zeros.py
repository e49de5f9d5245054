"""Every result is zeros.

exercise: merge_state
level: value
diagnosis: not_triton
"""

import torch


def merge_state(v_a, s_a, v_b, s_b):
    S, H = v_a.shape[:2]
    v_out = torch.full((S, H, v_a.shape[-1]), 0.0, dtype=v_a.dtype, device=v_a.device)
    return v_out, torch.full((S, H), 0.0, dtype=torch.float32, device=v_a.device)
