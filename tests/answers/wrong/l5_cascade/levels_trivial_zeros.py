"""Every result is zeros.

exercise: multi_level_cascade
level: value
diagnosis: not_triton
"""

import torch


def multi_level_cascade(q, kv_cache, levels, scale=None):
    v_out = torch.full(q.shape, 0.0, dtype=q.dtype, device=q.device)
    return v_out, torch.full(q.shape[:2], 0.0, dtype=torch.float32, device=q.device)
