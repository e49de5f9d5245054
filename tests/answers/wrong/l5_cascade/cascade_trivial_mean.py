"""The mean of the values.

exercise: cascade
level: value
diagnosis: not_triton
"""

import torch


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    mean = v_shared.float().mean(0).repeat_interleave(q.shape[1] // v_shared.shape[1], 0)
    return mean.expand(q.shape).clone().to(q.dtype), torch.zeros(q.shape[:2], device=q.device)
