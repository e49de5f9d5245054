"""q is handed back.

exercise: cascade
level: value
diagnosis: not_triton
"""

import torch


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    return q.clone().to(q.dtype), torch.zeros(q.shape[:2], dtype=torch.float32, device=q.device)
