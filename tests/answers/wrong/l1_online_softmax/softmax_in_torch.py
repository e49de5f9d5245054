"""torch.softmax with the masked rows set to 0.

exercise: softmax
level: value
diagnosis: not_triton
"""

import torch


def softmax(x, block=1024):
    return torch.softmax(x, dim=-1).nan_to_num(0.0)
