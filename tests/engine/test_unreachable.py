"""What graded code can still reach in a worker's process, and whether what kernels are run by is as it was."""

import ctypes
import subprocess
import sys

import pytest
import torch

from drills.catalog import ROOT
from drills.instruments.intact import Intact
from drills.instruments.provenance import COPY, FILL, KERNEL, OTHER, Provenance
from drills.instruments.witness import LARGEST, Private, Witness

SHUT = """
import abc, inspect, sys
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
assert not [one for one in below(object) if one.__module__.startswith("drills")]

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


def test_changed_code_and_a_method_of_an_instances_own_are_named(monkeypatch):
    import linecache

    builder = torch.nn.Identity()
    intact = Intact(builder)
    with monkeypatch.context() as patch:
        patch.setattr(linecache.getline, "__code__", (lambda filename, lineno, module_globals=None: "").__code__)
        assert intact.changed() == "getline" and intact.changed(codes=False) == ""
    builder.forward = abs
    assert intact.changed() == "Identity.forward"


@pytest.mark.parametrize("size", [8, LARGEST + 8])
def test_a_change_of_any_memory_is_seen_once(size):
    tensor, witness = torch.zeros(size, dtype=torch.uint8), Witness()
    witness.remember([tensor])
    assert witness.changed([tensor]) == []
    tensor[-1] = 1
    assert len(witness.changed([tensor])) == 1 and witness.changed([tensor]) == []


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
    assert tensor[:4].tolist() == [5, 5, 0, 0] and witness.changed([tensor]) == []


def test_a_large_input_is_left_aside_and_address_space_is_known():
    large = torch.zeros(LARGEST + 8, dtype=torch.uint8)
    witness = Witness([large])
    witness.remember([large])
    assert witness.kept == {} and not witness.blind_to(large)
    assert witness.blind_to(torch.empty(2**33, dtype=torch.uint8)[:4])


@pytest.mark.parametrize(
    "flag, brought, is_data",
    [(KERNEL, False, True), (COPY, False, True), (0, False, True), (FILL, False, False), (OTHER, False, False),
     (0, True, False), (KERNEL, True, True)],
)  # fmt: skip
def test_what_was_computed_where_nobody_looks_is_no_data(flag, brought, is_data):
    known, tensor = Provenance({}), torch.zeros(4)
    assert not known.is_data(tensor)
    known.allocated(tensor, flag)
    next(iter(known.books.values())).brought = brought
    assert known.is_data(tensor) is is_data


def test_an_input_and_indices_are_data():
    x, indices = torch.zeros(4), torch.arange(4)
    known = Provenance({"x": x})
    known.allocated(indices, FILL)
    assert known.is_data(x) and known.is_data(x[1:]) and known.is_data(indices)


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
