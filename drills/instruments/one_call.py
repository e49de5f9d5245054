"""One call under the instruments: launches and findings, from its start to its notes.

Knows no Triton internals: the interpreter tells it of launches through `begin`, `ordered` and `end`.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from drills.instruments import interpreter
from drills.instruments.geometry import address, extent, held, itemsize, numel, pointer, sizes
from drills.instruments.ledger import Region
from drills.instruments.notes import CallOptions, Finding, Launch, Notes
from drills.instruments.provenance import Book, Provenance
from drills.instruments.purity import CHANGED, Watched, spoil, whole
from drills.instruments.results import ALLOWED, FRESH, checked, named, view
from drills.instruments.trees import leaves
from drills.instruments.undisturbed import AsOutside, Undisturbed
from drills.instruments.views import View
from drills.instruments.watch import Watch
from drills.instruments.witness import Private, memory, seen

SHOWN = 8
"""Torch operations that one call is told of."""

MOST = 24
"""Findings of launches that one call is told of."""

AS_IT_IS = "Kernels are run here by numpy and by Triton's own Python: leave both as they are."


class Recording:
    """What happens between the call and the return of one graded function; also the interpreter's `Recorder`."""

    def __init__(self, options: CallOptions, inputs: dict[str, Any], inplace: Iterable[str] = ()) -> None:
        self.options = options
        self.masked_fill = options.masked_fill
        self.provenance = Provenance({name: t for key, tree in inputs.items() for name, t in leaves(tree, key)})
        self.inputs = self.provenance.inputs
        self.nothing_given = any(tree in ([], ()) for tree in inputs.values() if isinstance(tree, (list, tuple)))
        self.launches: list[tuple[Launch, Watch]] = []
        self.strange: list[dict[int, int]] = []  # of each launch: storages that hold more than data, bytes of data
        self.findings: list[Finding] = []
        self.started = 0
        self.replaced = ""
        self.machine = interpreter.machine()
        interpreted = getattr(self.machine, "intact", None) is not None
        self.torch = Watched(self.provenance, self._impure, options.empty_fill == "poison", interpreted)

    def __enter__(self) -> Recording:
        if self.machine is not None:
            self.machine.recorder = self
            self.torch.__enter__()  # else nobody would tell Triton's own operations from the learner's
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self.machine is not None:
            self.torch.__exit__(kind, error, trace)
            self.machine.recorder = None

    def begin(self, launch: Launch, tensors: list, values: dict[str, Any], line: Callable) -> Watch:
        """A launch starts. tensors: (parameter, tensor) of every pointer. values: of its parameters, if it is seen."""
        self.torch.operations.hold([tensor for _, tensor in tensors])
        strange: dict[int, int] = {}
        for _, tensor in tensors:
            data = self.provenance.data(tensor)
            if data < numel(tensor) and not blank(tensor):
                strange[address(tensor)] = max(strange.get(address(tensor), 0), data * itemsize(tensor))
        for _, tensor in tensors:
            if self.provenance.met(tensor):
                self._emptied(tensor)
        self.torch.operations.witness.meet(tensor for _, tensor in tensors)
        numbers = {name: value for name, value in values.items() if type(value) is int}
        launch.shapes = {name: list(sizes(tensor)) for name, tensor in tensors}
        regions = {name: self._region(name, tensor) for name, tensor in tensors}
        if values:
            self.torch.operations.told.launch(launch, values, regions)
        self.private = Private(self.torch.operations.witness)
        shift = self.private.shift
        watch = Watch(regions, self._behind(regions), launch.grid, numbers, line, _Known(self), private=shift)
        self.launches.append((launch, watch))
        self.strange.append(strange)
        return watch

    def noted(self, launch: Launch, tensors: list) -> None:
        """A launch on a GPU, where nobody sees what it does: all it was given counts as written."""
        watch = self.begin(launch, tensors, {}, lambda: (None, ""))
        watch.blind = True
        for region in watch.regions.values():
            self.provenance.handed(region)
        same = [one for one, _ in self.launches[:-1] if one == launch]
        if same:
            self.launches.pop()
            self.strange.pop()

    def ordered(self, count: int) -> Iterable[int]:
        """The order in which a launch's programs run."""
        self.started += 1
        order = list(range(count))
        if self.options.order_seed is not None:
            random.Random(f"{self.options.order_seed} {self.started}").shuffle(order)
        return order

    @property
    def turn(self) -> int:
        """Decides which masked-off lanes of the launch that runs read NaN and which a large number."""
        return (self.options.order_seed or 0) + self.started

    def called_python(self, name: str, line: int, file: str) -> None:
        """A kernel uses a Python function, which can do here what no kernel can."""
        source = linecache.getline(file, line).strip()
        got = f"a kernel calls {name}, which is no kernel but a Python function"
        finding = Finding("compile_error", got, likely=f"Put @triton.jit above {name}.", line=line, source=source)
        if finding not in self.findings:
            self.findings.append(finding)

    def _emptied(self, tensor: torch.Tensor) -> None:
        """A workspace from an earlier call is one that torch.empty has just given."""
        place, size = memory(tensor)
        if place and self.machine.left.knows(place, seen(place, size)):
            self.provenance.allocated(tensor, 0)
            spoil(whole(tensor), self.options.empty_fill == "poison")
            self.torch.operations.witness.remember([tensor])

    def end(self, watch: Watch) -> None:
        """A launch has ended, or was left by an exception."""
        self.look(codes=False)
        if watch.reached:
            self.torch.operations.told.pointed(self.launches[-1][0].kernel, [one.storage for one in watch.reached])
        for region in [*watch.regions.values(), *watch.hidden]:
            self.provenance.stored(region)
        meddled, copied = self.private.put_back(), self.private.copies.keys()
        for region in [one for one in watch.regions.values() if one.storage in meddled][:1]:
            self._impure(f"{region.shown} {CHANGED}", None, "")
        used = {region.storage for region in [*watch.regions.values(), *watch.hidden]}
        self.torch.operations.witness.again(used - copied)
        watch.settle()

    def paused(self) -> Whose:
        """Within, torch operations are the interpreter's own."""
        return Whose(self.torch.operations, True)

    def resumed(self) -> Whose:
        """Within, they are the learner's: while a kernel's own code runs."""
        return Whose(self.torch.operations, False)

    @property
    def kept(self) -> dict[int, bytes]:
        """The bytes of each storage, by address, as they were when last seen to be written; {} where nobody watches."""
        return self.torch.operations.witness.kept if self.machine is not None else {}

    def notes(self, results: Any = None) -> Notes:
        """What was seen. results: what the function returned; None if it raised or returns nothing."""
        self.look(codes=False)
        tensors = named(results)
        self.torch.operations.hold([*tensors.values(), *self.inputs.values()])
        notes = Notes(findings=list(self.findings))
        workspaces: dict[int, str] = {}
        for (launch, watch), strange in zip(self.launches, self.strange, strict=True):
            behind = {f"behind {at} {region.name}": region for at, region in enumerate(watch.hidden)}
            for parameter, region in {**watch.regions, **behind}.items():
                called = self._called(region, tensors, workspaces)
                moved = region.moved
                if moved.loaded and region.storage in strange and called.startswith("workspace"):
                    moved.elsewhere = max(0, moved.loaded - strange[region.storage])
                if parameter in watch.regions or moved.loaded or moved.stored:
                    launch.tensors[parameter] = called
                    if not watch.blind:
                        launch.traffic[parameter] = moved
                region.shown = called
            notes.launches.append(launch)
            notes.findings += watch.findings()
        notes.copies = self.torch.operations.copies.launches(
            lambda tensor: self._called(self._region("", tensor), tensors, workspaces)
        )
        self.torch.operations.told.returned(tensors)
        notes.told = self.torch.operations.told.entries
        if self.machine is not None:
            self.machine.left.keep(self.provenance.books, self.kept, tensors.values())
        notes.findings = notes.findings[:MOST]
        notes.findings += [
            Finding("not_triton", f"{name} lies in a storage too large to be watched", FRESH)
            for name, tensor in tensors.items()
            if self.machine is not None and self.torch.operations.witness.blind_to(tensor)
        ]
        impure = any(finding.kind == "not_triton" for finding in notes.findings)
        for finding in checked(
            tensors, self.provenance, self.machine is not None, self.nothing_given, bool(self.launches)
        ):
            if not (impure and finding.kind == "not_triton"):
                notes.findings.append(finding)
        return notes

    def _region(self, name: str, tensor: torch.Tensor) -> Region:
        return Region(name, self.provenance.source(tensor) or name, view(tensor), address(tensor))

    def _behind(self, regions: dict[str, Region]) -> list[Region]:
        """What the passed tensors may be views of: other inputs on their storage, and whole allocations."""
        storages = {region.storage: region for region in regions.values()}
        hidden = [
            Region(name, name, view(tensor), address(tensor))
            for name, tensor in self.inputs.items()
            if address(tensor) in storages
        ]
        for storage in storages:
            book = self.provenance.book(storage)
            if book is not None:
                hidden.append(allocation(storage, book, storages[storage].shown))
        return hidden

    def _called(self, region: Region, results: dict[str, torch.Tensor], workspaces: dict[int, str]) -> str:
        """An input's name, "result 0", or "workspace 0"."""
        for name, tensor in results.items():
            if address(tensor) == region.storage and pointer(tensor) < region.view.high:
                end = pointer(tensor) + extent(tensor) * itemsize(tensor)
                if region.view.low < end:
                    return name
        namesake = self.inputs.get(region.name)  # a kernel may call a workspace as the function calls an argument
        if region.shown != region.name or (namesake is not None and address(namesake) == region.storage):
            return region.shown
        return workspaces.setdefault(region.storage, f"workspace {len(workspaces)}")

    def look(self, codes: bool = True) -> None:
        """A finding if something that kernels are run by is another than it was before the graded file was loaded."""
        intact = getattr(self.machine, "intact", None)
        self.meddled(intact.changed(codes) if intact is not None else "")

    def meddled(self, lost: str) -> None:
        """A finding if something of this name is, or was for a time, another."""
        if lost and not self.replaced:
            self.replaced = lost
            self.findings.insert(0, Finding("not_triton", f"{lost} was replaced or changed", likely=AS_IT_IS))

    def _impure(self, what: str, line: int | None, file: str) -> None:
        """An operation that has no place outside a kernel."""
        source = linecache.getline(file, line or 0).strip()
        finding = Finding("not_triton", what, likely=ALLOWED, line=line, source=source)
        if finding not in self.findings and len(self.findings) < SHOWN:
            self.findings.append(finding)


class Whose:
    """Whose torch operations are, within. Nothing of Python's library has it in hand: that can be changed."""

    def __init__(self, operations: Any, paused: bool) -> None:
        self.operations, self.paused = operations, paused
        self.modes = Undisturbed() if paused else AsOutside(operations.outside)

    def __enter__(self) -> None:
        self.before = self.operations.paused, self.operations.outside
        self.modes.__enter__()
        self.operations.paused = self.paused
        if isinstance(self.modes, Undisturbed):
            self.operations.outside = self.modes.outside

    def __exit__(self, *error: Any) -> None:
        self.modes.__exit__(*error)
        self.operations.paused, self.operations.outside = self.before


class _Known:
    """All tensors of the call as regions, made only if somebody looks."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.made: list[Region] | None = None

    @property
    def regions(self) -> list[Region]:
        """Inputs, and what the function allocated."""
        if self.made is None:
            self.made = self._regions()
        return self.made

    def _regions(self) -> list[Region]:
        known = self.recording.provenance
        with self.recording.paused():
            inputs = [Region(name, name, view(tensor), address(tensor)) for name, tensor in known.inputs.items()]
            books = known.books.items()
            return inputs + [allocation(storage, book, book.name or "a workspace") for storage, book in books]

    def __iter__(self) -> Iterator[Region]:
        return iter(self.regions)


def blank(tensor: torch.Tensor) -> bool:
    """Whether these are integers that say nothing: counters, all of them 0."""
    return not tensor.dtype.is_floating_point and not bool(torch.count_nonzero(tensor))


def allocation(storage: int, book: Book, shown: str) -> Region:
    """A whole allocation as a region."""
    count = held(book.keep) // book.itemsize
    return Region(f"behind {shown}", shown, View(storage, book.itemsize, (count,), (1,)), storage)
