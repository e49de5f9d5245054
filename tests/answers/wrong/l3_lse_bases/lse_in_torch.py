"""torch.logsumexp.

exercise: lse
level: value
diagnosis: not_triton
"""

import torch


def lse(x):
    return torch.logsumexp(x.float(), dim=1)
