"""x itself is handed back.

exercise: softmax
level: value
diagnosis: *
"""

def softmax(x, block=1024):
    return x.clone()
