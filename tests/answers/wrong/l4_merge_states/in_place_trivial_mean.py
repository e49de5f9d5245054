"""The mean of the two states.

exercise: merge_state_in_place
level: value
diagnosis: not_triton
"""


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    v.add_(v_other).div_(2)
    s.add_(s_other).div_(2)
