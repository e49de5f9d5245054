"""The conversion in torch, no kernel.

exercise: to_flashinfer
level: value
diagnosis: not_triton
"""

import torch


def to_flashinfer(lse):
    return torch.where(lse == float("inf"), float("-inf"), lse / 0.6931471805599453).t().contiguous()
