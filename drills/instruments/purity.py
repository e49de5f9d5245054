"""Watches the torch operations of a graded function: what may stand around a kernel, and what may not.

Allowed: allocation, fills, views, copies and casts; anything on index tensors. Everything that computes with values, or
reads them out, is reported with the learner's line. torch.empty comes back full of poison.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from types import MethodType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from drills.instruments import peeks
from drills.instruments.copies import Copies
from drills.instruments.geometry import address, held, itemsize, numel, sizes
from drills.instruments.identity import identity
from drills.instruments.operations import (
    BROUGHT,
    ELEMENTWISE,
    EMPTY,
    LIKE,
    MOVED,
    NEW,
    REFILLED,
    SAME_MEMORY,
    Operation,
    of_torch,
    written_by,
)
from drills.instruments.provenance import FILL, OTHER, Provenance
from drills.instruments.told import Told
from drills.instruments.trees import leaves, replaced
from drills.instruments.undisturbed import BELOW_MODES, Undisturbed, keys
from drills.instruments.witness import Private, Witness

CONSTANTS = {"torch.tensor", "torch.scalar_tensor", "torch.asarray"}
READERS = {"tolist", "numpy", "__array__", "__dlpack__", "__reduce_ex__", "storage", "untyped_storage"}
SHOWN = {"__repr__", "__str__", "__format__"}
PUBLIC = {"_local_scalar_dense": ".item()", "is_nonzero": "bool()", "mm": "torch.matmul", "bmm": "torch.matmul"}
PUBLIC |= {"index": "x[indices]", "index_put_": "x[indices] = ..."}

BY_INDEX = {"index", "index_put_", "index_select", "gather", "take", "masked_select", "index_copy_", "scatter_"}

BY_KERNELS = ELEMENTWISE | MOVED | REFILLED | {"copy_"}
"""Operations that leave values where kernels wrote them, or bring them elsewhere."""

READS = "reads values out of a tensor"
COMPUTES = "computes with values outside a kernel"
PICKS = "picks values by index outside a kernel, which can load and store them at these places itself"
CHANGED = "was changed by something that is neither a launched kernel nor a torch operation of this thread"

_as_strided = torch._C.TensorBase.as_strided

Report = Callable[[str, int | None, str], None]
"""Called with what was done, and the learner's line and file."""


class Dispatch(TorchDispatchMode):
    """What torch is told to call. Graded code can ask torch for it, so it holds nothing but a function."""

    def __init__(self, operations: Operations) -> None:
        super().__init__()

        def dispatch(self: Any, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            return operations.dispatch(func, args, kwargs or {})

        self.__torch_dispatch__ = MethodType(dispatch, self)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would wrap `__torch_dispatch__` for its compiler, and import that (2 s) on the first operation."""
        return False


class Operations:
    """Every operation that reaches torch's kernels. outside: the dispatcher's keys where they are the learner's."""

    def __init__(self, provenance: Provenance, report: Report, poison: bool, interpreted: bool) -> None:
        self.provenance = provenance
        self.report = report
        self.poison = poison
        self.paused = False
        self.outside = keys()
        self.public = ""
        self.copies = Copies()
        self.witness = Witness(provenance.inputs.values())
        self.told = Told(provenance, self.witness, interpreted)

    def dispatch(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Run one operation by torch's own kernels, and see what it was."""
        with Undisturbed(BELOW_MODES):
            return self._dispatched(func, args, kwargs)

    def _dispatched(self, func: Any, args: tuple, kwargs: dict) -> Any:
        one = of_torch(func)
        call = func if one is None else one.call
        if self.paused:
            return call(*args, **kwargs)
        self.paused = True
        try:
            used = [tensor for _, tensor in leaves([args, kwargs], "")]
            self.hold(used)
            writes = written_by(func) if one is None else one.written
            written = [args[at] if at < len(args) else kwargs.get(name) for at, name in writes]
            changed = [tensor for _, tensor in leaves(written, "")]
            if any(map(self.provenance.is_given, changed)):
                self.told.operation(func._schema.name, [args, kwargs])
            elsewhere = one.name in BY_KERNELS if one is not None else bool(changed) and not func.is_view
            private = Private(self.witness)
            result = self._privately(private, call, args, kwargs) if elsewhere else call(*args, **kwargs)
            self._judge(one or func._schema.name.split("::")[-1], args, kwargs, result, changed)
            meddled = private.put_back()  # until then, what is told of memory is what was there before
            for tensor in [tensor for tensor in used if address(tensor) in meddled][:1]:
                self.say(f"{self.provenance.source(tensor) or 'a tensor'}{list(sizes(tensor))} {CHANGED}")
            if one is None or not (one.is_view or one.name in SAME_MEMORY):
                results = [*changed, *(tensor for _, tensor in leaves(result, ""))]
                self.witness.remember(tensor for tensor in results if address(tensor) not in private.copies)
        finally:
            self.paused = False
        return result

    def _privately(self, private: Private, call: Callable, args: tuple, kwargs: dict) -> Any:
        """Run an operation on copies that nobody else knows: torch lets other threads run meanwhile."""
        own: dict[int, torch.Tensor] = {}

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            fresh = private.tensor(tensor)
            own[identity(fresh)] = tensor
            return fresh

        given = [replaced(one, copied) if any(leaves(one, "")) else one for one in args]
        named = {name: replaced(one, copied) if any(leaves(one, "")) else one for name, one in kwargs.items()}
        return replaced(call(*given, **named), lambda tensor: own.get(identity(tensor), tensor))

    def hold(self, tensors: list[torch.Tensor]) -> None:
        """Report those that something else than a kernel or a torch operation has written to meanwhile."""
        for name in self.provenance.moved():
            self.say(f"{name}'s memory {CHANGED}")
        strange = (tensor for tensor in tensors if self.provenance.is_disguised(tensor))
        for tensor in chain(strange, self.witness.changed(tensors)):
            name = self.provenance.source(tensor) or "a tensor"
            self.say(f"{name}{list(sizes(tensor))} {CHANGED}")

    def _judge(self, one: Operation | str, args: tuple, kwargs: dict, result: Any, changed: list[torch.Tensor]) -> None:
        """See what was done. one: the operation, or only its name. changed: what it writes to of what was there."""
        made = [tensor for _, tensor in leaves(result, "") if not any(tensor is other for other in changed)]
        if isinstance(one, str):
            self._computed(one, args, kwargs, made, changed)
        elif one.name in EMPTY:
            for tensor in [*made, *changed]:
                self.provenance.allocated(tensor, 0)
                spoil(whole(tensor), self.poison)
        elif one.name in NEW | LIKE | REFILLED:
            self._flagged(made, changed, FILL)
        elif one.name in BROUGHT:
            self._flagged(made, changed, FILL if self.public in CONSTANTS else OTHER)
        elif one.name == "copy_":
            self._copied_into(args[0], args[1])
        elif one.name in ELEMENTWISE | MOVED:
            self._copied(one, args, kwargs, result, changed)
        elif not one.is_view and one.name not in SAME_MEMORY:
            self._computed(one.name, args, kwargs, made, changed)

    def _flagged(self, made: list[torch.Tensor], changed: list[torch.Tensor], flag: int) -> None:
        """New tensors, and those that were there before, are all of one kind now."""
        for tensor in made:
            self.provenance.allocated(tensor, flag)
        for tensor in changed:
            self.provenance.set(tensor, flag)

    def _copied_into(self, target: torch.Tensor, source: torch.Tensor) -> None:
        if self.provenance.is_value(source):
            self.copies.add(".copy_()", peeks.learner_line()[0], [source], target)
            if not self.provenance.is_given(target):
                self.told.operation(".copy_()", [target, source])
        flags = self.provenance.copied(source)
        self.provenance.set(target, flags.expand(sizes(target)))
        if self.provenance.source(target) and bool((flags == OTHER).any()):
            self.say(f".copy_() puts values into {self.provenance.source(target)} that no kernel computed")

    def _copied(
        self, one: Operation, args: tuple, kwargs: dict, result: torch.Tensor, changed: list[torch.Tensor]
    ) -> None:
        known, name, func = self.provenance, one.name, one.call
        sources = [tensor for _, tensor in leaves(args, "")]
        names = {known.source(tensor) for tensor in sources}
        if not changed:
            known.allocated(result, 0, names.pop() if len(names) == 1 else "")
        if any(known.is_value(tensor) for tensor in sources):
            known.values.add(address(result))
            self.copies.add(self._name(name), peeks.learner_line()[0], sources, result)
            self.told.operation(name, [args, kwargs])
        if name in ELEMENTWISE:
            flags = known.copied(sources[-1])  # "copy" has a second one, which is what it copies
            alike = numel(result) == flags.numel()
            known.set(result, flags.reshape(sizes(result)) if alike else flags.expand(sizes(result)))
        elif name == "constant_pad_nd":
            known.set(result, func(known.copied(args[0]).contiguous(), args[1], FILL))
        else:
            out = {"out": known.flags(result).clone()} if changed else {}
            known.set(result, func(replaced(args[0], known.copied), *args[1:], **{**kwargs, **out}))

    def _computed(
        self, name: str, args: tuple, kwargs: dict, made: list[torch.Tensor], changed: list[torch.Tensor]
    ) -> None:
        used = [tensor for _, tensor in leaves([args, kwargs], "")]
        values = any(map(self.provenance.is_value, used))
        self._flagged(made, changed, OTHER if values else FILL)
        if values:
            self.provenance.values.update(map(address, [*made, *changed]))
            reads = name in ("_local_scalar_dense", "is_nonzero")
            self.say(f"{self._name(name)} {READS if reads else PICKS if name in BY_INDEX else COMPUTES}")

    def _name(self, name: str) -> str:
        """What the learner called, for an operation of torch's own."""
        return PUBLIC.get(name) or self.public or f"torch.{name.strip('_')}"

    def say(self, what: str) -> None:
        """Report one operation."""
        self.report(what, *peeks.learner_line())


class Named(TorchFunctionMode):
    """What torch is told to call, as `Dispatch` is."""

    def __init__(self, names: Names) -> None:
        super().__init__()

        def function(self: Any, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            return names.function(func, args, kwargs or {})

        self.__torch_function__ = MethodType(function, self)


class Names:
    """Public names of operations, and the methods that read values without reaching torch's kernels."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations

    def function(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Call one function of torch's, and see what it is called."""
        operations = self.operations
        if operations.paused:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in READERS and args and isinstance(args[0], torch.Tensor) and operations.provenance.is_value(args[0]):
            operations.say(f".{name}() {READS}")
        if name in SHOWN:
            operations.paused = True
            try:
                return func(*args, **kwargs)
            finally:
                operations.paused = False
        before, operations.public = operations.public, operations.public or f"torch.{name.strip('_')}"
        try:
            return func(*args, **kwargs)
        finally:
            operations.public = before


class Watched:
    """Both modes around the graded function, and the memory that ctypes reads behind torch's back."""

    def __init__(self, provenance: Provenance, report: Report, poison: bool, interpreted: bool) -> None:
        self.operations = Operations(provenance, report, poison, interpreted)
        self.modes = Named(Names(self.operations)), Dispatch(self.operations)

    def __enter__(self) -> Watched:
        peeks.listen(self._peeked)
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self.modes):
            mode.__exit__(*error)
            vars(mode).clear()  # it held itself, and all that the call had
        peeks.listen(None)

    def _peeked(self) -> None:
        if not self.operations.paused:
            self.operations.say(f"ctypes {READS}")


def spoil(tensor: torch.Tensor, poison: bool) -> None:
    """Fill fresh memory: NaN or a large number, or 0 where poison is not wanted."""
    if tensor.dtype.is_complex or not poison:
        tensor.zero_()
    elif tensor.dtype.is_floating_point:
        tensor.fill_(float("nan"))
    elif tensor.dtype == torch.bool:
        tensor.fill_(True)
    else:
        tensor.fill_(int.from_bytes(b"\x5a" * itemsize(tensor), "little"))


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All that its memory has room for."""
    return _as_strided(tensor, (held(tensor) // itemsize(tensor),), (1,), 0)
