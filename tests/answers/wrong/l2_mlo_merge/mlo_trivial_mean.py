"""The mean over all heads and parts, for every head.

exercise: merge_mlo
level: value
diagnosis: not_triton
"""


def merge_mlo(m, l, o):
    return o.float().mean((0, 1)).expand(o.shape[1:]).to(o.dtype).clone()
