"""The mean of everything.

exercise: merge_states
level: value
diagnosis: not_triton
"""


def merge_states(v, s):
    return v.mean(1), s.mean(1)
