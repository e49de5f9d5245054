"""The mean of all rows, for every position.

exercise: variable_length_merge_states
level: value
diagnosis: not_triton
"""


def variable_length_merge_states(v, s, indptr):
    S = indptr.shape[0] - 1
    return v.mean(0).expand(S, *v.shape[1:]).clone(), s.mean(0).expand(S, *s.shape[1:]).clone()
