"""Side a is handed back.

exercise: merge_natural
level: value
diagnosis: not_triton
"""


def merge_natural(o_a, lse_a, o_b, lse_b):
    return o_a.clone(), lse_a.clone()
