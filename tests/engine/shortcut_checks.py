"""What the interpreter computes at once is what Triton's own way gives: values, types, and what is refused.

Run by test_interpreter_shortcuts in a process of its own: Triton is imported here, and a process that has imported it
without TRITON_INTERPRET can fork no worker that interprets.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.identity import identity
from drills.instruments.interpreter import operators, shortcuts
from drills.instruments.interpreter.language import Language
from drills.instruments.interpreter.meaning import Meaning, Semantic
from drills.instruments.interpreter.memory import Builder
from drills.instruments.interpreter.now import NOW

SHAPES = [(), (1,), (4,), (4, 1), (1, 4), (2, 4), (8,)]
KINDS = [tl.int1, tl.int8, tl.int32, tl.int64, tl.uint32, tl.float16, tl.bfloat16, tl.float32, tl.float64]
INTEGERS = [-(2**31), -3, 0, 1, 7, 2**31 - 1, 5, 2]
LITERALS = [0, 3, -1, 2**31 - 1, 2**31, 2**40, 2**63, 0.5, -1.5, 1e300, math.nan, True]
OTHERS = ("where", "expand_dims", "broadcast_impl_value", "_load_legacy", "cast", "full", "arange", "dot")
NAMES = [name for name in vars(shortcuts.Shortcuts) if not name.startswith("__") and name not in OTHERS]
NO_NAN = (tl.PropagateNan.NONE,)
MORE = {"add": (True,), "sub": (True,), "mul": (True,), "maximum": NO_NAN, "minimum": NO_NAN}
POINTER = tl.pointer_type(tl.float32)


@pytest.fixture(scope="module")
def semantic():
    return Semantic(Builder())


def tensor(kind, shape):
    count = math.prod(shape)
    values = np.resize(np.array(INTEGERS, dtype=np.int64), count)
    with np.errstate(all="ignore"):
        data = (values / 3 if kind.is_floating() else values).astype(plain._get_np_dtype(kind))
    handle = plain.TensorHandle(data.reshape(shape or (1,)), kind)
    return tl.tensor(handle, tl.block_type(kind, list(shape)) if shape else kind)


def outcome(method, *operands):
    """(type, bits, shape) of a result, or the exception's type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = method(*operands)
        except Exception as error:
            return type(error)
    return [
        (
            str(one.type),
            one.handle.dtype.name,
            str(one.handle.data.dtype),
            one.handle.data.shape,
            one.handle.data.tobytes(),
        )
        for one in (made if isinstance(made, tuple) else (made,))
    ]


def both(semantic, name):
    return getattr(semantic, name), getattr(super(shortcuts.Shortcuts, semantic), name)


@pytest.mark.parametrize("name", NAMES)
def test_two_tensors_give_the_same(semantic, name):
    ours, theirs = both(semantic, name)
    shapes = list(itertools.product(SHAPES, repeat=2))
    for left, right in itertools.product([*KINDS, POINTER], repeat=2):
        for number, (one, other) in enumerate(shapes):
            if left is not right and number % 5:
                continue
            operands = tensor(left, one), tensor(right, other), *MORE.get(name, ())
            assert outcome(ours, *operands) == outcome(theirs, *operands), (left, right, one, other)


@pytest.mark.parametrize("name", NAMES)
def test_a_literal_gives_the_same(semantic, name):
    ours, theirs = both(semantic, name)
    for kind, shape, literal in itertools.product([*KINDS, POINTER], [(), (4,), (2, 4)], LITERALS):
        one, more = tensor(kind, shape), MORE.get(name, ())
        for operands in ((one, literal, *more), (literal, one, *more)):
            assert outcome(ours, *operands) == outcome(theirs, *operands), (kind, shape, literal)


def test_a_choice_gives_the_same(semantic):
    ours, theirs = both(semantic, "where")
    kinds = [(tl.float32, tl.float32), (tl.int32, tl.int64), (tl.int32, tl.float32), (tl.float16, tl.float32)]
    for (left, right), (held, one, other) in itertools.product([*kinds, (POINTER, POINTER)], triples()):
        condition = tensor(tl.int1, held)
        for operands in (
            (tensor(left, one), tensor(right, other)),
            (tensor(left, one), 0.0),
            (1, tensor(right, other)),
        ):
            expected = outcome(theirs, condition, *operands)
            assert outcome(ours, condition, *operands) == expected, (left, right, held, one, other)
    assert outcome(ours, tensor(tl.int32, (4,)), tensor(tl.float32, (4,)), 1.0) == outcome(
        theirs, tensor(tl.int32, (4,)), tensor(tl.float32, (4,)), 1.0
    )


def triples():
    return itertools.product(SHAPES, [(), (4,), (4, 1)], [(), (4,), (1, 4)])


@pytest.mark.parametrize("kind", KINDS + [POINTER])
def test_an_axis_more_and_a_common_shape_are_the_same(semantic, kind):
    for shape, axis in itertools.product(SHAPES, (-1, 0, 1, 2)):
        operands = tensor(kind, shape), axis
        ours, theirs = both(semantic, "expand_dims")
        assert outcome(ours, *operands) == outcome(theirs, *operands), (shape, axis)
    for one, other in itertools.product(SHAPES, repeat=2):
        operands = tensor(kind, one), tensor(tl.int1, other)
        ours, theirs = both(semantic, "broadcast_impl_value")
        assert outcome(ours, *operands) == outcome(theirs, *operands), (one, other)


def test_the_common_ones_are_done_at_once(semantic):
    """Of what kernels do most, nothing goes Triton's way: its method is never called."""
    block, row, scalar = tensor(tl.int32, (4,)), tensor(tl.float32, (1, 4)), tensor(tl.int64, ())
    for lhs, rhs in ((block, scalar), (row, tensor(tl.float32, (2, 1))), (block, 3), (2.5, row), (row, block)):
        assert shortcuts.at_once(semantic, lhs, rhs, np.multiply, shortcuts.NUMBERS, None) is not None
    assert shortcuts.moved(semantic, tensor(POINTER, ()), block) is not None
    assert shortcuts.at_once(semantic, tensor(tl.float16, (4,)), 1, np.add, shortcuts.NUMBERS, None) is None


@pytest.mark.parametrize("name", ["reduce", "associative_scan", "range"])
def test_a_kernel_gets_our_reduction_under_every_name(semantic, name):
    """Triton patches two modules at once; its own way calls a combine function for each element, 50 ms a reduction."""
    table = Language(semantic, Meaning(semantic)).table
    for module in (tl, tl.core):
        assert table[identity(module), name][2].__module__.startswith("drills."), module.__name__


def test_a_pointer_keeps_where_it_came_from(semantic):
    pointer = tensor(POINTER, ())
    pointer.handle.origin = "v_ptr"
    assert semantic.add(pointer, tensor(tl.int32, (4,)), True).handle.origin == "v_ptr"


@pytest.fixture(scope="module")
def table(semantic):
    return Language(semantic, Meaning(semantic)).table


DUNDERS = [f"__{name}__" for name in operators.TABLE] + [f"__r{name}__" for name in operators.TURNED]


def operator_pair(semantic, table, name):
    """What a kernel's tensors have, and Triton's own on the same builder."""
    theirs, plainly = vars(tl.tensor)[name], plain.TritonSemantic(semantic.builder)
    return table[identity(tl.tensor), name][2], lambda *operands: theirs(*operands, _semantic=plainly)


@pytest.mark.parametrize("name", DUNDERS)
def test_operators_give_the_same(semantic, table, name):
    ours, theirs = operator_pair(semantic, table, name)
    assert ours.__qualname__.startswith("Operators.")
    shapes = list(itertools.product(SHAPES, repeat=2))
    for left, right in itertools.product([*KINDS, POINTER], repeat=2):
        for number, (one, other) in enumerate(shapes):
            if left is not right and number % 5:
                continue
            operands = tensor(left, one), tensor(right, other)
            assert outcome(ours, *operands) == outcome(theirs, *operands), (left, right, one, other)
    for kind, shape, literal in itertools.product([*KINDS, POINTER], [(), (4,), (2, 4)], LITERALS):
        for other in (literal, tl.constexpr(literal)):
            operands = tensor(kind, shape), other
            assert outcome(ours, *operands) == outcome(theirs, *operands), (kind, shape, other)


def test_operators_do_the_common_ones_themselves(semantic):
    def never(*operands):
        raise AssertionError("Triton was asked")

    made = operators.Operators(semantic).replacements(lambda name: never)
    block, row, scalar = tensor(tl.int32, (4,)), tensor(tl.float32, (1, 4)), tensor(tl.int64, ())
    for name in ("__add__", "__rsub__", "__mul__", "__lt__", "__eq__"):
        for lhs, rhs in ((block, scalar), (block, 3), (row, 2.5), (row, tensor(tl.float32, (2, 1))), (scalar, block)):
            assert made[name](lhs, rhs).type.is_block()
    assert made["__add__"](tensor(POINTER, (4,)), block).type.scalar is POINTER
    assert made["__add__"](tensor(POINTER, ()), block).type.is_block()
    assert made["__add__"](tensor(POINTER, ()), scalar).type is POINTER


MEMORY = np.arange(64, dtype=np.float64)


def addresses(kind, shape):
    """Pointers to elements of this type in MEMORY, from the first one on."""
    count = math.prod(shape)
    numbers = MEMORY.ctypes.data + 8 * np.arange(count, dtype=np.uint64)
    pointer = tl.pointer_type(kind)
    handle = plain.TensorHandle(numbers.reshape(shape or (1,)), pointer)
    return tl.tensor(handle, tl.block_type(pointer, list(shape)) if shape else pointer)


@pytest.mark.parametrize("kind", KINDS)
def test_a_load_gives_the_same(semantic, kind):
    def loads(method):
        def load(pointers, mask, other):
            NOW.present = True  # for Triton's own, which asks `if other`
            try:
                return method(pointers, mask, other, (), None, None, None, False)
            finally:
                NOW.present = False

        return load

    ours, theirs = (loads(method) for method in both(semantic, "_load_legacy"))
    others = [None, 0.0, -0.0, 1.5, -math.inf, 3, 2**20 + 1, tensor(tl.int64, ()), tensor(tl.float32, (4,))]
    for shape, held in itertools.product([(), (1,), (4,), (2, 4)], [None, (), (4,), (2, 4), (4, 1)]):
        masks = [None] if held is None else [tensor(tl.int1, held), tensor(tl.int32, held)]
        for mask, other in itertools.product(masks, others):
            given = other if other is None or isinstance(other, tl.tensor) else semantic.to_tensor(other)
            operands = addresses(kind, shape), mask, given
            assert outcome(ours, *operands) == outcome(theirs, *operands), (shape, held, other)


def test_common_loads_are_done_at_once(semantic):
    zero = semantic.to_tensor(0.0)
    for kind in (tl.float16, tl.float32, tl.int32):
        pointers = addresses(kind, (4,))
        assert shortcuts.loaded(semantic, pointers, None, None) is not None
        assert shortcuts.loaded(semantic, pointers, tensor(tl.int1, (4,)), zero) is not None
        assert shortcuts.loaded(semantic, pointers, tensor(tl.int1, (4,)), None) is not None


@pytest.mark.parametrize("rounding", [None, "rtne", "rtz"])
def test_a_cast_gives_the_same(semantic, rounding):
    ours, theirs = both(semantic, "cast")
    for kind, wanted, shape in itertools.product([*KINDS, POINTER], KINDS, SHAPES):
        operands = tensor(kind, shape), wanted, rounding
        assert outcome(ours, *operands) == outcome(theirs, *operands), (kind, wanted, shape)


def test_a_block_of_one_number_is_the_same(semantic):
    ours, theirs = both(semantic, "full")
    values = [*LITERALS, 0.0, -0.0, -math.inf, False, tensor(tl.int32, ()), tensor(tl.float32, (4,))]
    for shape, value, kind in itertools.product([[], [1], [4], [2, 4]], values, KINDS):
        assert outcome(ours, shape, value, kind) == outcome(theirs, shape, value, kind), (shape, value, kind)


def test_a_range_is_the_same_each_time(semantic):
    ours, theirs = both(semantic, "arange")
    for bounds in itertools.product([0, 1, 4, 8, -4, 2**32, 0.0, True], repeat=2):
        expected = outcome(theirs, *bounds)
        assert [outcome(ours, *bounds) for _ in range(2)] == [expected] * 2, bounds


def test_a_product_is_the_same_each_time(semantic):
    """The second of a kind is the one that is made at once."""
    ours, theirs = both(semantic, "dot")
    shapes = [((16, 16), (16, 16)), ((16, 32), (32, 16)), ((8, 16), (16, 16)), ((16, 16), (32, 16)), ((4,), (4,))]
    for (left, right), kind, other, total in itertools.product(shapes, KINDS, KINDS, (None, tl.float32, tl.float16)):
        if kind is not other and left != (16, 16):
            continue
        sums = None if total is None else tensor(total, (left[0], right[-1]) if len(left) == 2 else left)
        for precision, imprecise, out in (("ieee", None, tl.float32), ("none", None, tl.float32), ("tf32", 0, total)):
            operands = tensor(kind, left), tensor(other, right), sums, precision, imprecise, out
            expected = outcome(theirs, *operands)
            assert [outcome(ours, *operands) for _ in range(2)] == [expected] * 2, (left, right, kind, other, total)


def test_casts_blocks_ranges_and_products_are_made_at_once(semantic, monkeypatch):
    half = tensor(tl.float16, (16, 16))
    sums = tensor(tl.float32, (16, 16))
    semantic.arange(0, 16), semantic.dot(half, half, sums, "ieee", None, tl.float32)

    def never(*operands, **named):
        raise AssertionError("Triton was asked")

    for name in ("cast", "full", "arange", "dot"):
        monkeypatch.setattr(plain.TritonSemantic, name, never)
    assert semantic.cast(tensor(tl.int32, (4,)), tl.int64).type.scalar is tl.int64
    assert semantic.cast(sums, tl.bfloat16).type.shape == sums.type.shape
    assert semantic.full([4], -math.inf, tl.float32).type.is_block()
    assert semantic.arange(0, 16).handle.data.dtype == np.int32
    assert semantic.dot(half, half, sums, "ieee", None, tl.float32).type.scalar is tl.float32
