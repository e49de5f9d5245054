"""q is handed back.

exercise: attend_shared
level: value
diagnosis: not_triton
"""

import torch


def attend_shared(q, k, v, scale=None):
    return q.clone().to(torch.float32), torch.zeros(q.shape[:2], dtype=torch.float32, device=q.device)
