"""The wire carries every legal call unchanged, and turns everything else into `Malformed`."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drills.sandbox import wire
from drills.sandbox.layout import DTYPES as KNOWN
from drills.sandbox.layout import Limits, Malformed, Opaque, Oversized
from drills.sandbox.wire import CALL, HEADER, REPLY, Message

DTYPES = sorted(KNOWN, key=str)


def sent(tree, limits=CALL):
    """The tree as the other side has it."""
    return wire.copy(Message({}, tree), limits).tree


def assert_same(got, tensor):
    assert (got.shape, got.dtype, got.stride()) == (tensor.shape, tensor.dtype, tensor.stride())
    assert got.storage_offset() == tensor.storage_offset()
    assert torch.equal(got, tensor)


def numbers(shape, dtype=torch.float32):
    return torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_arrives(dtype):
    assert_same(sent(numbers((2, 3), dtype)), numbers((2, 3), dtype))


VIEWS = {
    "transposed": lambda: numbers((3, 4, 5)).transpose(0, 2),
    "sliced, with an offset": lambda: numbers((4, 6))[1:, 2::2],
    "broadcast mask": lambda: torch.ones(1, dtype=torch.bool).expand(7),
    "broadcast in the middle": lambda: numbers((3, 1, 5)).expand(3, 4, 5),
    "no element": lambda: torch.empty(0, 3),
    "no element, sliced": lambda: numbers((4, 3))[4:],
    "no dimension": lambda: torch.tensor(3.0),
    "overlapping windows": lambda: numbers((6,)).as_strided((4, 3), (1, 1)),
    "strides past 32 bits": lambda: torch.empty(2**33, dtype=torch.uint8)[:: 2**32].fill_(7),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_strides_and_offsets_arrive(make):
    tensor = make()
    assert_same(sent(tensor), tensor)


def test_broadcast_elements_travel_once():
    data = wire.encode(Message({}, torch.zeros(1).expand(10**6)), CALL)
    assert len(data) < 1000


def test_the_same_tensor_twice_is_one_tensor():
    x = numbers((2, 2))
    a, (b,) = sent((x, [x]))
    assert a is b


def test_two_views_of_one_storage_arrive():
    x = numbers((4, 4))
    a, b = sent((x[0], x[1]))
    assert torch.equal(a, x[0]) and torch.equal(b, x[1])


def test_a_negated_view_arrives_as_what_it_shows():
    """Its memory holds the opposite."""
    shown = torch._neg_view(numbers((2, 3)))
    assert_same(sent(shown), -numbers((2, 3)))


def test_nan_and_infinity_arrive():
    got = sent((torch.tensor([float("nan"), float("inf")]), float("-inf")))
    assert got[0].isnan().tolist() == [True, False] and got[1] == float("-inf")


def test_what_cannot_travel_arrives_as_its_type():
    class Odd(str):
        pass

    assert sent({1: 2}) == Opaque("dict")
    assert sent((object(), Odd("x"))) == (Opaque("object"), Opaque("test_wire.Odd"))
    assert isinstance(sent(torch.zeros(2, dtype=torch.complex64)), Opaque)
    assert isinstance(sent(torch.eye(2).to_sparse()), Opaque)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(TREES)
@settings(max_examples=40, deadline=None)
def test_any_tree_arrives(tree):
    assert sent(tree) == tree


@st.composite
def views(draw):
    """A tensor of any small shape, dtype and strides, stride 0 and empty ones included."""
    dims = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=4))
    shape, stride = [size for size, _ in dims], [step for _, step in dims]
    offset = draw(st.integers(0, 5))
    memory = torch.arange(offset + sum(4 * step for step in stride) + 1)
    return memory.to(draw(st.sampled_from(DTYPES))).as_strided(shape, stride, offset)


@given(views())
@settings(max_examples=60, deadline=None)
def test_any_view_arrives(tensor):
    assert_same(sent(tensor), tensor)


def test_a_message_larger_than_the_limit_is_not_sent():
    small = Limits(json=200, blob=200, expanded=1 << 20, span=1 << 20)
    with pytest.raises(Oversized):
        wire.encode(Message({}, torch.zeros(100)), small)
    with pytest.raises(Oversized):
        wire.encode(Message({"text": "x" * 300}), small)
    with pytest.raises(Oversized):
        wire.encode(Message({}, torch.zeros(1).expand(1 << 20)), small)


def test_views_of_one_buffer_count_as_the_buffers_that_they_become():
    limits, memory = Limits(json=1 << 20, blob=1 << 20, expanded=1 << 20, span=1 << 20), torch.zeros(1 << 19).byte()
    views = [memory[at::4096] for at in range(3)]
    assert len(wire.copy(Message({}, views[:2]), limits).tree) == 2
    with pytest.raises(Oversized):
        wire.encode(Message({}, views), limits)
    data = wire.encode(Message({}, views), REPLY)
    with pytest.raises(Oversized):
        wire.decode(*parts(data), limits)


def parts(data, limits=REPLY):
    text, _ = wire.sizes(data[: HEADER.size], limits)
    return data[HEADER.size : HEADER.size + text], data[HEADER.size + text :]


def test_a_header_that_promises_too_much_is_refused_before_anything_is_read():
    with pytest.raises(Oversized):
        wire.sizes(HEADER.pack(wire.MAGIC, 10, 1 << 60), REPLY)
    with pytest.raises(Malformed):
        wire.sizes(b"\x80\x04garbage!!!!!!!!"[: HEADER.size], REPLY)


def forged(layout, blob=None, tree=None):
    """A message with one tensor whose layout is a lie."""
    honest = wire.encode(Message({}, numbers((2, 3))), REPLY)
    text, honest_blob = parts(honest)
    outer = json.loads(text)
    outer["tensors"] = [layout]
    outer["tree"] = {"x": 0} if tree is None else tree
    return json.dumps(outer).encode(), honest_blob if blob is None else blob


FORGERIES = {
    "negative stride": ([[2, 3], [-3, 1], 0],),
    "negative offset": ([[2, 3], [3, 1], -1],),
    "far too large": ([[2**40, 2**40], [1, 1], 0],),
    "far apart": ([[2, 3], [2**50, 1], 0],),
    "another shape": ([[3, 3], [3, 1], 0],),
    "a shape of text": ([["2", 3], [3, 1], 0],),
    "a shape of booleans": ([[True, 6], [3, 1], 0],),
    "too many dimensions": ([[1] * 40, [1] * 40, 0],),
    "no layout": (None,),
    "blob cut short": ([[2, 3], [3, 1], 0], b"\x10\0\0\0\0\0\0\0{}"),
    "blob of noise": ([[2, 3], [3, 1], 0], bytes(range(256))),
    "no blob": ([[2, 3], [3, 1], 0], b""),
    "a tensor that is not there": ([[2, 3], [3, 1], 0], None, {"x": 7}),
    "a tensor by a negative number": ([[2, 3], [3, 1], 0], None, {"x": -1}),
    "a node of two kinds": ([[2, 3], [3, 1], 0], None, {"x": 0, "l": []}),
    "a node of no kind": ([[2, 3], [3, 1], 0], None, {"pickle": "gASVBAAAAAAAAABLAS4="}),
    "a bare list": ([[2, 3], [3, 1], 0], None, [1]),
}


@pytest.mark.parametrize("case", FORGERIES.values(), ids=FORGERIES)
def test_forged_messages_are_malformed(case):
    text, blob = forged(*case)
    with pytest.raises(Malformed):
        wire.decode(text, blob, REPLY)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b'{"head":1}', b"[" * 100_000, b"9" * 10_000])
def test_text_that_is_no_message_is_malformed(text):
    with pytest.raises(Malformed):
        wire.decode(text, b"", REPLY)


@given(st.binary(max_size=200), st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_noise_is_malformed(text, blob):
    with pytest.raises(Malformed):
        wire.decode(text, blob, REPLY)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_message_with_one_byte_changed_is_a_message_or_malformed(data):
    text, blob = parts(wire.encode(Message({"a": 1}, (numbers((2, 3)), [numbers((4,)).to(torch.int64)])), REPLY))
    whole = bytearray(text + blob)
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        got = wire.decode(bytes(whole[: len(text)]), bytes(whole[len(text) :]), REPLY)
    except Malformed:
        return
    assert isinstance(got, Message)
