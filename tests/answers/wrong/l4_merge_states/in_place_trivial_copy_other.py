"""The other state replaces this one.

exercise: merge_state_in_place
level: value
diagnosis: wrong_value
"""


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    v.copy_(v_other)
    s.copy_(s_other)
