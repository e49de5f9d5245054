"""q is handed back.

exercise: attend_paged
level: value
diagnosis: not_triton
"""

import torch


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    return q.clone().to(torch.float32), torch.zeros(q.shape[:2], dtype=torch.float32, device=q.device)
