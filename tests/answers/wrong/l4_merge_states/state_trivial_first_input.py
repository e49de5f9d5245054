"""The first state is handed back.

exercise: merge_state
level: value
diagnosis: not_triton
"""


def merge_state(v_a, s_a, v_b, s_b):
    return v_a.clone(), s_a.clone()
