"""The mean over the heads, for every head.

exercise: to_flashinfer
level: value
diagnosis: not_triton
"""


def to_flashinfer(lse):
    H, T = lse.shape
    return lse.mean(0)[:, None].expand(T, H).contiguous()
