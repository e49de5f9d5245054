"""The first state is handed back.

exercise: merge_states
level: value
diagnosis: not_triton
"""


def merge_states(v, s):
    return v[:, 0].clone(), s[:, 0].clone()
