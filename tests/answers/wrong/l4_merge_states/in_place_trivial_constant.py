"""v and s become one.

exercise: merge_state_in_place
level: value
diagnosis: wrong_value
"""


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    v.fill_(1.0)
    s.fill_(1.0)
