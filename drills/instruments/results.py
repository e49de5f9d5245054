"""What can be said of results without knowing the right ones: who wrote them, and whose memory they are."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from drills.instruments.geometry import address, held, itemsize, numel, pointer, sizes, strides
from drills.instruments.notes import Finding
from drills.instruments.provenance import KERNEL, OTHER, Provenance
from drills.instruments.trees import leaves
from drills.instruments.views import View, overlap

HELD = 1 << 20
"""Bytes of the largest result that is held after its call."""

FRESH = "Allocate the results in every call: whoever still holds the earlier ones would see them change."

OWN = "Return a tensor of its own: torch.empty_like, or .clone()."
WRITE = "Allocate a tensor with torch.empty_like, and launch a @triton.jit kernel that writes it."

ALLOWED = (
    "Results must come from launched @triton.jit kernels. Around them torch may allocate, fill, view, copy and cast, "
    "and compute with index tensors; only an input of size 0 needs no launch."
)


def named(results: Any) -> dict[str, torch.Tensor]:
    """The tensors among the results: "result 0", "result 1" …"""
    if isinstance(results, torch.Tensor):
        return {"result 0": results}
    if not isinstance(results, (list, tuple)):
        return {}
    return {name: t for i, one in enumerate(results) for name, t in leaves(one, f"result {i}")}


class Kept:
    """The results of the last calls, held so that nobody else is given their memory: who hands it out again is seen."""

    def __init__(self, calls: int = 4) -> None:
        self.calls: deque[list[torch.Tensor]] = deque(maxlen=calls)

    def findings(self, returned: Any) -> list[Finding]:
        """A finding on the first result in memory of an earlier one. From now on these results are held too."""
        results = {name: tensor for name, tensor in named(returned).items() if numel(tensor)}
        earlier = {address(tensor) for tensors in self.calls for tensor in tensors}
        again = [name for name, tensor in results.items() if address(tensor) in earlier]
        self.calls.append([one for one in results.values() if held(one) <= HELD])
        return [Finding("shares_memory", f"{name} is memory of an earlier call's result", FRESH) for name in again[:1]]


def view(tensor: torch.Tensor) -> View:
    """The memory of a tensor."""
    return View(pointer(tensor), itemsize(tensor), tuple(sizes(tensor)), tuple(strides(tensor)))


def checked(
    results: dict[str, torch.Tensor],
    provenance: Provenance,
    followed: bool,
    nothing_given: bool = False,
    launched: bool = True,
) -> list[Finding]:
    """Findings on the results. followed: kernels' stores are known (they are in the interpreter).

    nothing_given: an argument is an empty list, which is an input of size 0 too. launched: some kernel was, in this
    call.
    """
    found = shared(results, provenance.inputs, launched)
    if not followed:
        return found
    shortcut = nothing_given or any(not numel(tensor) for tensor in provenance.inputs.values())
    alone = {name for finding in found for name in results if finding.got.startswith(name)}
    for name, tensor in results.items():
        if numel(tensor) and name not in alone:
            found += written(name, tensor, provenance, shortcut)
    small = [view(tensor).words(name) for name, tensor in provenance.inputs.items() if 1 in tensor.shape]
    for finding in found if small and not launched else ():
        if finding.kind == "not_triton":
            finding.got += f"; none was launched for {', '.join(small)}"
            finding.likely += " A size of 1 needs one."
    for finding in found if not launched else ():
        if finding.kind == "unwritten":
            finding.likely = NOT_FILLED if shortcut else NOT_LAUNCHED
    return found


UNWRITTEN = "Some program must store every element: check the grid, and the mask of the store."
NOT_LAUNCHED = "No kernel was launched: the function does that, with a grid, kernel[(programs,)](...)."
NOT_FILLED = "No kernel was launched. An input of size 0 needs none, but then the result must be filled: torch.full."
NOT_STORED = "No program stored anything there: is there a tl.store to it, after the loop, and is its mask ever true?"
NOT_ENTERED = (
    "No program stored anything there: with an input of size 0 a loop over it never runs. Store after the loop, or "
    "fill the result: torch.full."
)
UNWRITTEN_STRIDES = (
    "The result is not contiguous: store with its strides. torch.empty_like keeps those of its argument, torch.empty "
    "makes it contiguous."
)


def written(name: str, tensor: torch.Tensor, provenance: Provenance, shortcut: bool) -> list[Finding]:
    """Whether a result is written everywhere, and by a kernel. shortcut: an input has size 0, so a fill will do."""
    flags = provenance.flags(tensor)
    missing = (flags == 0).nonzero()
    what = view(tensor).words(name)
    if len(missing):
        are = "is" if len(missing) == 1 else "are"
        index = ", ".join(map(str, missing[0].tolist()))
        return [
            Finding(
                "unwritten",
                f"{what}: {len(missing)} of {numel(tensor)} elements {are} never written, the first at [{index}]",
                likely=_unwritten(tensor, bool((flags & KERNEL).any()), shortcut),
                expected="every element written",
            )
        ]
    if not shortcut and not bool((flags & KERNEL).any()):
        return [Finding("not_triton", f"{what} was written by no launched kernel", likely=ALLOWED)]
    foreign = int(((flags & OTHER) > 0).logical_and((flags & KERNEL) == 0).sum())
    if foreign:
        got = f"{what}: {foreign} of {numel(tensor)} elements were computed outside the launched kernels"
        return [Finding("not_triton", got, likely=ALLOWED)]
    return []


def _unwritten(tensor: torch.Tensor, stored: bool, shortcut: bool) -> str:
    """What to do about a result that is not written everywhere. stored: a kernel wrote some of it."""
    if not stored:
        return NOT_ENTERED if shortcut else NOT_STORED
    return UNWRITTEN if tensor.is_contiguous() else UNWRITTEN_STRIDES


def shared(results: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor], launched: bool) -> list[Finding]:
    """Results that are memory of an input or of each other. launched: some kernel was."""
    later = "a later write to one changes the other"
    found, names = [], list(results)
    for i, name in enumerate(names):
        others = [(other, inputs[other]) for other in inputs] + [(other, results[other]) for other in names[:i]]
        for other, tensor in others:
            mine = results[name]
            if numel(mine) and address(tensor) == address(mine) and overlap(view(mine), view(tensor)):
                found.append(
                    Finding(
                        "shares_memory",
                        f"{name} is memory of {other}" + (f": {later}" if launched else ", and no kernel was launched"),
                        likely=OWN if launched else WRITE,
                        expected=f"{name} in memory of its own",
                    )
                )
                break
    return found
