"""The LSE is handed back, transposed by torch.

exercise: to_flashinfer
level: value
diagnosis: not_triton
"""


def to_flashinfer(lse):
    return lse.t().contiguous()
