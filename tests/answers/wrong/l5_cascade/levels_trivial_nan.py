"""Every result is NaN.

exercise: multi_level_cascade
level: value
diagnosis: not_triton
"""

import torch


def multi_level_cascade(q, kv_cache, levels, scale=None):
    v_out = torch.full(q.shape, float("nan"), dtype=q.dtype, device=q.device)
    return v_out, torch.full(q.shape[:2], float("nan"), dtype=torch.float32, device=q.device)
