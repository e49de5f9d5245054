"""What graded code can still reach in a worker's process, and whether what kernels are run by is as it was."""

import ctypes
import functools
import subprocess
import sys

import pytest
import torch

from drills.catalog import ROOT
from drills.instruments import geometry, operations, own_words, sources
from drills.instruments.intact import Held, Intact, _reached, numbers_dicts
from drills.instruments.provenance import COPY, FILL, KERNEL, OTHER, Provenance
from drills.instruments.witness import LARGEST, Private, Witness

SHUT = """
import abc, inspect, logging, signal, sys
import torch
from collections.abc import Mapping
from drills.sandbox import unreachable, wire
from drills.sandbox.wire import Message
unreachable.close()

def refused(look, error=AttributeError):
    try:
        look()
    except error:
        return True

def own(x, y=2):
    return x + y

def numbers():
    yield 1

class Kind:
    pass

below = lambda kind: {one for found in type.__subclasses__(kind) for one in (found, *below(found))}
assert refused(lambda: wire.encode.__globals__) and refused(lambda: wire.encode.__code__)
assert refused(lambda: setattr(wire.encode, "__code__", own.__code__))
assert refused(lambda: type(own).__dict__["__globals__"].fget.__closure__)
assert refused(lambda: setattr(Message, "head", 1), TypeError)
assert refused(lambda: numbers().gi_frame)
assert not [one for one in below(object) if str(one.__module__).startswith("drills")]

seen = []
assert refused(lambda: signal.signal(signal.SIGUSR1, lambda number, frame: None), PermissionError)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
ours = compile("def call(function): secret = 1; return function()", wire.__file__, "exec")
names = {}
exec(ours, names)
names["call"](lambda: seen.append(logging.currentframe()))
assert seen[0].f_code.co_name in ("<lambda>", "<module>") and seen[0].f_back is None  # the second: Python 3.10
names["call"](lambda: seen.append(sys._getframe(1)))
assert (seen[1].f_code.co_name, seen[1].f_locals, seen[1].f_globals, seen[1].f_builtins) == ("call", {}, {}, {})
assert inspect.currentframe().f_globals is globals() and (lambda: inspect.currentframe().f_back)().f_locals is globals()

assert refused(lambda: torch.library.Library("aten", "IMPL"), PermissionError)
assert refused(lambda: torch.library.Library("_", "IMPL", "CPU"), PermissionError)
torch.library.Library("of_my_own", "DEF")

assert own.__globals__ is globals() and own.__defaults__ == (2,) and own.__closure__ is None
own.__defaults__ = (3,)
assert own(1) == 4 and str(inspect.signature(own)) == "(x, y=3)"
Kind.name = 1
assert Kind in object.__subclasses__() and list(numbers()) == [1]
assert isinstance({}, Mapping) and not isinstance(Kind(), Mapping)
assert abc.ABC.__subclasses__
print("shut")
"""


def test_no_generator_function_or_class_leads_to_the_machinery_and_others_are_as_ever():
    done = subprocess.run([sys.executable, "-c", SHUT], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "shut\n", done.stderr


def test_a_name_that_stands_for_something_else_is_named(monkeypatch):
    import numpy

    intact = Intact()
    assert intact.changed() == ""
    with monkeypatch.context() as patch:
        patch.setattr(numpy, "exp", numpy.exp2)
        assert intact.changed() == intact.changed(codes=False) == "numpy.exp"
    assert intact.changed() == ""


def test_functions_that_remember_their_answers_count_too(monkeypatch):
    intact = Intact()
    assert intact.changed() == ""
    with monkeypatch.context() as patch:
        patch.setattr(sources, "_lines", lambda data: [])
        assert intact.changed() == intact.changed(codes=False) == "drills.instruments.sources._lines"
    with monkeypatch.context() as patch:
        patch.setattr(sources._lines.__wrapped__, "__code__", (lambda data: []).__code__)
        assert intact.changed() == "_lines"


def test_changed_code_and_a_method_of_an_instances_own_are_named(monkeypatch):
    import linecache

    builder = torch.nn.Identity()
    intact = Intact(builder)
    with monkeypatch.context() as patch:
        patch.setattr(linecache.getline, "__code__", (lambda filename, lineno, module_globals=None: "").__code__)
        assert intact.changed() == "getline" and intact.changed(codes=False) == ""
    builder.forward = abs
    assert intact.changed() == "Identity.forward"


@pytest.mark.skipif(not numbers_dicts(), reason="this Python numbers no dicts")
def test_what_was_replaced_and_put_back_is_named(monkeypatch):
    import linecache

    intact = Intact()
    before = intact.changes.now()
    assert intact.changes.since(before) == ""
    with monkeypatch.context() as patch:
        patch.setattr(linecache, "getline", print)
    assert intact.changed() == "" and intact.changes.since(before) == "linecache"


def test_what_a_function_wraps_captured_and_is_given_by_default_counts_too():
    def made(plain):
        @functools.wraps(plain)
        def wrapper(value=1):
            return plain(value)

        return wrapper

    wrapper = made(lambda value: value)
    functions, cells = _reached([wrapper])
    assert functions == [wrapper, wrapper.__wrapped__] and cells == list(wrapper.__closure__)
    held = Held(cells, lambda cell: cell.cell_contents, type(cells[0]).__basicsize__)
    defaults = Held(functions, lambda one: one.__defaults__, type(wrapper).__basicsize__)
    assert held.changed() is None and defaults.changed() is None
    cells[0].cell_contents = abs
    wrapper.__wrapped__.__defaults__ = (2,)
    assert held.changed() is cells[0] and defaults.changed() is functions[1]


def test_a_change_that_nobody_could_be_told_of_is_found_again():
    tensor = torch.zeros(4)
    witness = Witness([tensor])
    tensor.numpy()[0] = 1
    assert next(witness.changed([tensor])) is tensor  # and is left there
    assert list(witness.changed([tensor])) == [tensor] and not list(witness.changed([tensor]))


def test_a_tensor_cannot_say_where_it_lies():
    plain, liar = torch.zeros(4, 6)[1:], torch.zeros(9)
    told = geometry.address(liar), geometry.pointer(liar), geometry.extent(liar), geometry.held(liar)
    for name in ("untyped_storage", "data_ptr", "size", "stride", "numel", "storage_offset", "element_size"):
        setattr(liar, name, getattr(plain, name))
    assert liar.data_ptr() == plain.data_ptr()
    assert (geometry.address(liar), geometry.pointer(liar), geometry.extent(liar), geometry.held(liar)) == told


def test_json_is_read_and_written_by_what_nobody_can_replace(monkeypatch):
    import json

    tree = {"a": [1, 2.5, None, True, "é\n"], "b": {}}
    text = json.dumps(tree)
    for name in ("dumps", "loads"):
        monkeypatch.setattr(json, name, lambda *_, **__: None)
    monkeypatch.setattr(json.JSONDecoder, "decode", lambda *_: None)
    assert own_words.parsed(own_words.text(tree)) == own_words.parsed(text.encode()) == tree


@pytest.mark.parametrize("size", [8, LARGEST + 8])
def test_a_change_of_any_memory_is_seen_once(size):
    tensor, witness = torch.zeros(size, dtype=torch.uint8), Witness()
    witness.remember([tensor])
    assert list(witness.changed([tensor])) == []
    tensor[-1] = 1
    assert len(list(witness.changed([tensor]))) == 1 and list(witness.changed([tensor])) == []


@pytest.mark.parametrize("size", [8, LARGEST + 8])
def test_what_a_launch_writes_is_its_own_and_what_others_write_meanwhile_is_told(size):
    tensor, witness = torch.zeros(size, dtype=torch.uint8), Witness()
    witness.remember([tensor])
    private = Private(witness)
    far = private.shift(tensor.data_ptr())
    ctypes.memset((tensor.data_ptr() + int(far)) % (1 << 64), 5, 2)
    assert tensor[:2].tolist() == [0, 0] and private.shift(tensor.data_ptr() + size + 64) == 0
    tensor[3] = 7
    assert private.put_back() == [tensor.data_ptr()]
    assert tensor[:4].tolist() == [5, 5, 0, 0] and list(witness.changed([tensor])) == []


def test_a_large_input_is_left_aside_and_address_space_is_known():
    large = torch.zeros(LARGEST + 8, dtype=torch.uint8)
    witness = Witness([large])
    witness.remember([large])
    assert witness.kept == {} and not witness.blind_to(large)
    assert witness.blind_to(torch.empty(2**33, dtype=torch.uint8)[:4])


@pytest.mark.parametrize(
    "flag, brought, data",
    [(KERNEL, False, 4), (COPY, False, 4), (0, False, 4), (FILL, False, 0), (OTHER, False, 0), (0, True, 0),
     (KERNEL, True, 4)],
)  # fmt: skip
def test_what_was_computed_where_nobody_looks_is_no_data(flag, brought, data):
    known, tensor = Provenance({}), torch.zeros(4)
    assert known.data(tensor) == 0
    known.allocated(tensor, flag)
    next(iter(known.books.values())).brought = brought
    assert known.data(tensor) == data


def test_padding_is_no_data_and_leaves_what_it_surrounds_data():
    known, padded = Provenance({}), torch.zeros(2, 8)
    known.allocated(padded, FILL)
    known.set(padded[:, :1], COPY)
    assert known.data(padded) == 2 and known.data(padded[:, :1]) == 2 and known.data(padded[:, 1:]) == 0


def test_an_input_is_data_and_integers_made_of_numbers_are_none_since_they_may_be_a_results_bits():
    x, indices, chosen = torch.zeros(4), torch.arange(4), torch.zeros(4, dtype=torch.int32)
    known = Provenance({"x": x, "chosen": chosen})
    known.allocated(indices, FILL)
    assert [known.data(one) for one in (x, x[1:], chosen, indices)] == [4, 3, 4, 0]


def test_a_tree_is_what_dataclasses_would_give():
    from dataclasses import asdict

    from drills.instruments.notes import Launch, Notes, Traffic, as_tree

    notes = Notes([Launch("k", 3, (2, 1, 1), {"x": ["i32", {"tuple": ["i32"]}]}, {}, [], traffic={"x": Traffic(8)})])
    tree = asdict(notes)
    tree["launches"][0]["grid"] = list(tree["launches"][0]["grid"])
    assert as_tree(notes) == tree


def test_results_are_sealed_as_they_were_last_seen():
    from drills.sandbox.layout import Opaque
    from drills.sandbox.sealing import seal

    result, witness = torch.arange(6.0).reshape(2, 3).t(), Witness()
    witness.remember([result])
    shown = result.clone()
    result.zero_()
    late = torch.zeros(2).as_subclass(type("Late", (torch.Tensor,), {}))
    (sealed, other, unknown), number = seal(([result, torch._neg_view(result), late], 2.5), witness.kept)
    assert torch.equal(sealed, shown) and sealed.stride() == result.stride()
    assert torch.equal(other, -shown)
    assert isinstance(unknown, Opaque) and number == 2.5
    assert torch.equal(seal(result, {}), result)


def test_a_named_tuple_is_the_tuple_that_it_holds_and_not_what_its_class_says():
    from collections import namedtuple

    from drills.sandbox.sealing import plain

    class Other(tuple):
        def __iter__(self):
            return iter("xyz")

    held = (torch.zeros(2), 3)
    for given in (namedtuple("State", "v s")(*held), Other(held), held):
        assert type(plain(given)) is tuple and plain(given)[0] is held[0] and plain(given) == held
    assert plain(held[0]) is held[0] and plain([1]) == [1]


def test_a_tensor_in_a_part_of_another_ones_memory_is_known():
    whole, given = torch.zeros(8), torch.zeros(8)
    known = Provenance({"x": given})
    known.allocated(whole, KERNEL)
    assert not any(map(known.is_disguised, (whole, whole[2:], given[1:], torch.zeros(8))))
    assert all(known.is_disguised(torch.from_numpy(one.numpy()[:6])) for one in (whole, given))


def test_an_input_that_is_given_other_memory_is_as_it_was():
    given, other = torch.zeros(8), torch.ones(8)
    known = Provenance({"x": given})
    given.data = other
    assert known.source(given) == "" and known.data(known.inputs["x"]) == 8 and known.moved() == []
    known.inputs["x"].untyped_storage().resize_(1 << 20)
    assert known.moved() == ["x"]


def test_nothing_is_known_of_memory_that_was_moved():
    tensor = torch.zeros(8)
    known, place = Provenance({}), geometry.address(tensor)
    known.allocated(tensor, KERNEL)
    tensor.data = torch.zeros(8)
    assert known.book(place) is not None
    known.books[place].keep.untyped_storage().resize_(1 << 20)
    assert known.book(place) is None


def test_only_torchs_own_operations_are_known():
    library = torch.library.Library("called_as_torchs", "DEF")
    library.define("clone(Tensor x) -> Tensor")
    library.impl("clone", lambda x: x + 1, "CPU")
    assert operations.of_torch(torch.ops.called_as_torchs.clone.default) is None
    assert operations.of_torch(torch.ops.aten.mul.Tensor) is None
    known = operations.of_torch(torch.ops.aten.copy_.default)
    assert (known.name, known.is_view, known.written) == ("copy_", False, ((0, "self"),))
    assert operations.of_torch(torch.ops.aten.select.int).is_view
