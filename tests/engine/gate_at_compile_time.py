"""Functions that run while a kernel is compiled. Read by test_gate_at_compile_time, which compiles a kernel for each.

The line that is refused ends in "# here: " and words of the reason; functions without one are taken.
"""

import math
import os
import sys
from typing import NamedTuple

import triton
import triton.language as tl
from triton.language import core

LEAST = 16
SEEN = []


class Pair(NamedTuple):
    low: int
    high: int


class Sly(Pair):
    def __new__(cls, low):
        return super().__new__(cls, low, low)


class Cunning:
    def __index__(self):
        return 1

    def __add__(self, other):
        return len(sys.modules)

    def __radd__(self, other):
        return len(sys.modules)


CUNNING = tl.constexpr(Cunning())


def plain(size):
    return size


@triton.constexpr_function
def half_of(size):
    """Half."""
    return size // 2


@triton.constexpr_function
def computes(size, least=LEAST):
    width: int = half_of(size) * 2
    steps = 0
    while width > least and steps < 40:
        width, steps = width // 2, steps + 1
    for step in range(0, steps, 2):
        if step == 3:
            continue
        width += min(step, 0) - abs(0) + int(math.log2(math.e)) + math.floor(math.log2(1.0)) * len((1, 2))
    width = width if width is not None else 0
    assert width >= 0 and not width < 0
    return max(triton.next_power_of_2(width), triton.cdiv(size, size), 1 << (1).bit_length() - 1)


@triton.constexpr_function
def imports(size):
    import os  # here: imports does import os

    return size + len(os.environ) * 0


@triton.constexpr_function
def looks_at_variables(size):
    return size if os.environ else size * 2  # here: uses os


@triton.constexpr_function
def looks_at_modules(size):
    return size * max(1, "numpy" in sys.modules)  # here: uses sys


@triton.constexpr_function
def looks_at_its_argument(size):
    return size if hasattr(size, "handle") else size * 2  # here: calls hasattr


@triton.constexpr_function
def looks_at_its_type(size):
    return size if size.__class__ else size * 2  # here: uses size.__class__


@triton.constexpr_function
def looks_at_a_word(size):
    return size if tl.load == core.load else size * 2  # here: uses tl.load


@triton.constexpr_function
def looks_behind_a_function(size):
    return size if print.__self__ else size * 2  # here: uses print.__self__


@triton.constexpr_function
def writes_text(size):
    return len("%s" % size) * size  # noqa: UP031  # here: formats '%s' % size


@triton.constexpr_function
def asks_for_a_type(size):
    return size if tl.float32 == tl.float32 else size * 2


@triton.constexpr_function
def asks_who_it_is(size):
    return size if size is LEAST else size * 2  # here: whether two things are one object


@triton.constexpr_function
def calls_plain_python(size):
    return plain(size)  # here: uses plain, a Python function


@triton.constexpr_function
def remembers(size):
    SEEN.append(size)  # here: uses SEEN, a Python list
    return size


@triton.constexpr_function
def writes(size):
    print(open)  # here: does print(open)
    return size


@triton.constexpr_function
def tries(size):
    try:  # here: does try
        return size
    except ValueError:
        return 1


@triton.constexpr_function
def makes_a_function(size):
    return (lambda: size)()  # here: calls lambda


@triton.constexpr_function
def formats(size):
    return len(f"{size}") * size  # here: does f'{size}'


@triton.constexpr_function
def stores_in_a_list(size):
    many = [size]
    many[0] = 2  # here: changes many[0]
    return size


@triton.constexpr_function
def takes_many(*sizes):  # here: any number of arguments
    return sizes[0]


def moved(function, line):
    function.__code__ = function.__code__.replace(co_firstlineno=line, co_name="half_of")
    function.__name__ = "half_of"
    return triton.constexpr_function(function)


def _forged(size):
    return size * max(1, "numpy" in sys.modules)


forged = moved(_forged, half_of.fn.__code__.co_firstlineno)
nameless = triton.constexpr_function(plain)
nameless.fn = lambda size: size


@triton.jit
def names_a_class(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, Pair(B, B).low), 0.0)


@triton.jit
def names_a_class_with_functions(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, Sly(B).low), 0.0)  # refused: Sly is a Python type


@triton.jit
def names_a_constant_of_python(x, n, B: tl.constexpr):
    tl.store(x + n, CUNNING + B)  # refused: CUNNING is a Python Cunning
