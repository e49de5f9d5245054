"""Every result is zeros.

exercise: cascade
level: value
diagnosis: not_triton
"""

import torch


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    v_out = torch.full(q.shape, 0.0, dtype=q.dtype, device=q.device)
    return v_out, torch.full(q.shape[:2], 0.0, dtype=torch.float32, device=q.device)
