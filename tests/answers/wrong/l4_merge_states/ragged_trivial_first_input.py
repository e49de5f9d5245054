"""The first state is handed back.

exercise: variable_length_merge_states
level: value
diagnosis: not_triton
"""


def variable_length_merge_states(v, s, indptr):
    return v[: indptr.shape[0] - 1].clone(), s[: indptr.shape[0] - 1].clone()
