"""No kernel at all: the formula in torch.

exercise: merge_state
level: value
diagnosis: not_triton
"""

import torch


def merge_state(v_a, s_a, v_b, s_b):
    s = torch.logaddexp2(s_a, s_b)
    w_a = torch.exp2(s_a - s).nan_to_num(0.0)[..., None]
    w_b = torch.exp2(s_b - s).nan_to_num(0.0)[..., None]
    v = torch.where(w_a > 0, v_a.float(), 0.0) * w_a + torch.where(w_b > 0, v_b.float(), 0.0) * w_b
    return v.to(v_a.dtype), s
