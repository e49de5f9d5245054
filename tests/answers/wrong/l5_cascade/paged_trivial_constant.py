"""Every result is constant.

exercise: attend_paged
level: value
diagnosis: not_triton
"""

import torch


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    v_out = torch.full(q.shape, 1.0, dtype=torch.float32, device=q.device)
    return v_out, torch.full(q.shape[:2], 1.0, dtype=torch.float32, device=q.device)
