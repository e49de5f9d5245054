"""Every result is NaN.

exercise: variable_length_merge_states
level: value
diagnosis: not_triton
"""

import torch


def variable_length_merge_states(v, s, indptr):
    S, H = (indptr.shape[0] - 1, v.shape[1])
    v_out = torch.full((S, H, v.shape[-1]), float("nan"), dtype=v.dtype, device=v.device)
    return v_out, torch.full((S, H), float("nan"), dtype=torch.float32, device=v.device)
