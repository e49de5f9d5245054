"""Part a is handed back.

exercise: merge_pair
level: value
diagnosis: not_triton
"""


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    return m_a.clone(), l_a.clone(), o_a.clone()
