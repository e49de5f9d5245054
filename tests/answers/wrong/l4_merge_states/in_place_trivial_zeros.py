"""v and s become zero.

exercise: merge_state_in_place
level: value
diagnosis: wrong_value
"""


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    v.zero_()
    s.zero_()
