"""v and s become NaN.

exercise: merge_state_in_place
level: value
diagnosis: not_finite
"""


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    v.fill_(float("nan"))
    s.fill_(float("nan"))
