"""Every result is NaN.

exercise: merge_state
level: value
diagnosis: not_triton
"""

import torch


def merge_state(v_a, s_a, v_b, s_b):
    S, H = v_a.shape[:2]
    v_out = torch.full((S, H, v_a.shape[-1]), float("nan"), dtype=v_a.dtype, device=v_a.device)
    return v_out, torch.full((S, H), float("nan"), dtype=torch.float32, device=v_a.device)
