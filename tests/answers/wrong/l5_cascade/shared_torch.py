"""Attention in torch.

exercise: attend_shared
level: value
diagnosis: not_triton
"""

import torch


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    G = Hq // k.shape[1]
    scale = D**-0.5 if scale is None else scale
    scores = torch.einsum("bhd,phd->bhp", q.float(), k.float().repeat_interleave(G, 1)) * scale
    o = torch.einsum("bhp,phd->bhd", scores.softmax(-1), v.float().repeat_interleave(G, 1))
    return o, torch.logsumexp(scores, -1) / 0.6931471805599453
