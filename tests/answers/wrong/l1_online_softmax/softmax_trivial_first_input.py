"""x itself is handed back.

exercise: softmax
level: value
diagnosis: not_triton
"""


def softmax(x, block=1024):
    return x.clone()
