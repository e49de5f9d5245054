"""The mean of everything.

exercise: merge_state
level: value
diagnosis: not_triton
"""


def merge_state(v_a, s_a, v_b, s_b):
    return (v_a + v_b) / 2, (s_a + s_b) / 2
