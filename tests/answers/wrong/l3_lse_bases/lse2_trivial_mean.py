"""The row's mean is handed back, from torch.

exercise: lse2
level: value
diagnosis: not_triton
"""


def lse2(x):
    return x.float().mean(1)
