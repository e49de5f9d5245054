"""Every result is NaN, straight from torch.

exercise: attend
level: value
diagnosis: *
"""

import torch


def attend(scores, v, block=64):
    return torch.full((scores.shape[0], v.shape[1]), float("nan"), dtype=v.dtype, device=v.device)
