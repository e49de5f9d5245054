"""Within an undisturbed time torch answers by itself: whoever else would be asked, is not, and is again afterwards."""

import contextlib

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from drills.instruments.undisturbed import BELOW_MODES, AsOutside, Undisturbed

NEG = torch.ops.aten.neg.default
CPU = torch._C.DispatchKey.CPU


class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return torch.zeros(2)

    @classmethod
    def _should_skip_dynamo(cls):
        return False


class Hears(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return torch.zeros(2)


class Strange(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.zeros(2)


@contextlib.contextmanager
def python_dispatcher():
    NEG._dispatch_cache[CPU] = lambda tensor: torch.zeros(2)
    try:
        with torch._C._EnablePythonDispatcher():
            yield
    finally:
        NEG._dispatch_cache.pop(CPU)


@pytest.mark.parametrize("disturbs", [Dispatches, Hears, python_dispatcher])
@pytest.mark.parametrize("time", [Undisturbed, lambda: Undisturbed(BELOW_MODES)], ids=["plain", "below modes"])
def test_nobody_is_asked_within_and_everybody_around_it(disturbs, time):
    ones = torch.ones(2)
    with disturbs():
        found = [torch.neg(ones)]
        with time() as undisturbed:
            found.append(torch.neg(ones))
            with AsOutside(undisturbed.outside):
                found.append(torch.neg(ones))
        found.append(torch.neg(ones))
    assert [one.tolist() for one in found] == [[0, 0], [-1, -1], [0, 0], [0, 0]]


def test_a_class_of_tensors_is_not_asked_either():
    strange = torch.ones(2).as_subclass(Strange)
    assert torch.neg(strange).tolist() == [0, 0]
    with Undisturbed():
        assert torch.neg(strange).tolist() == [-1, -1]
