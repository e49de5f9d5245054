"""Nothing is done.

exercise: merge_state_in_place
level: value
diagnosis: nothing_changed
"""


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    return None
