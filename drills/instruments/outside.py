"""Says in words what an access outside a tensor was: which tensor, which element, and the likely reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from drills.instruments.assumed import strides_taken
from drills.instruments.ledger import Region
from drills.instruments.notes import Finding

WRAP = 1 << 31

STRIDED = "It is not contiguous: multiply each index by its stride, or use .contiguous() in the wrapper."


class KernelFault(Exception):
    """A kernel did what no GPU forgives. finding: what the instruments say about it; str() is its first sentence."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.got)
        self.finding = finding


class OutOfBounds(KernelFault):
    """An unmasked lane pointed outside its tensor."""


@dataclass(frozen=True)
class Faulty:
    """One access with lanes outside. verb: "tl.load of"; address: of the first lane outside; bad: how many are."""

    verb: str
    region: Region
    addresses: np.ndarray
    mask: np.ndarray | None
    itemsize: int
    address: int
    bad: int

    @property
    def element(self) -> int:
        """Distance of the address from the tensor's first element, in elements."""
        return (self.address - self.region.view.base) // self.region.view.itemsize


def outside(
    fault: Faulty,
    others: Iterable[Region],
    numbers: dict[str, int],
    program: str,
    line: int | None,
    source: str,
) -> Finding:
    """What to say of `fault`. others: the launch's other tensors. numbers: integer parameters by name."""
    view = fault.region.view
    got = f"{fault.verb} {view.words(fault.region.shown)} {_where(fault)}, in program {program}"
    others = list(others)
    other = next((one for one in others if one.view != view and one.view.low <= fault.address < one.view.high), None)
    if other is not None:
        got += f"; that address is in {other.view.words(other.shown)}"
    taken = strides_taken(fault.region, fault.addresses, fault.mask, fault.address, others)
    likely = taken or _likely(fault, numbers)
    if other is not None and abs(fault.element) < WRAP // 2:
        likely = f"The offset leads from {fault.region.shown} into {other.shown}: check which pointer it is added to."
    return Finding("out_of_bounds", got, likely=likely, line=line, source=source)


def _where(fault: Faulty) -> str:
    view, element = fault.region.view, fault.element
    span = (view.high - view.low) // view.itemsize
    what = "element" if view.contiguous else "offset"
    if not view.numel:
        return f"at {what} {element}, but it has no element"
    if element < 0:
        return f"at {what} {element}, {-element} before the first (0)"
    if element >= span:
        past = element - span + 1
        return f"at {what} {element}, {'one' if past == 1 else past} past the last ({span - 1})"
    if fault.address + fault.itemsize > view.high:
        return f"at {what} {element}, {fault.itemsize} bytes wide, past the end"
    return f"at {what} {element}, between its rows, where it has no element"


def _likely(fault: Faulty, numbers: dict[str, int]) -> str:
    view = fault.region.view
    if not view.numel:
        return "The tensor is empty: return before the launch, or mask every lane."
    span = (view.high - view.low) // view.itemsize
    if fault.element < 0 and span + WRAP > -fault.element > WRAP // 2:
        return "The offset wrapped at 2^31: cast the index before it is multiplied, as in row.to(tl.int64) * stride."
    lanes, row = _lanes(fault), view.shape[-1] if view.shape else 1
    block = f"{_named(lanes, numbers)}{lanes}"
    size = f"{_named(row, numbers)}{row}"
    if fault.element < 0:
        return "The offset is negative: check what is subtracted, and where the first row starts."
    if fault.address + fault.itemsize <= view.high:
        return STRIDED
    everything = fault.bad == (fault.addresses.size if fault.mask is None else int(fault.mask.sum()))
    if everything and fault.addresses.size > 1 or fault.addresses.size == 1:
        ask = "the offset" if view.contiguous else "multiply each index by this tensor's own stride"
        return (
            "Nothing of what this program touches here is inside: are there more programs than rows, or is a stride "
            f"another tensor's? Check the grid and {ask}, or mask rows past the last one."
        )
    if fault.mask is None and lanes > row:
        return f"The block is {block} wide but a row has {size}: mask the lanes past the row's end."
    if not view.contiguous:
        return STRIDED
    if fault.mask is None:
        return "The last block runs past the end: mask the lanes there."
    return "The mask lets lanes past the end through, or a stride is another tensor's: check each index against both."


def _lanes(fault: Faulty) -> int:
    """Lanes along the innermost axis of the access."""
    return fault.addresses.shape[-1] if fault.addresses.ndim else 1


def _named(value: int, numbers: dict[str, int]) -> str:
    """ "BLOCK_D = " for a parameter that holds the value, else "". A size comes before a stride that equals it."""
    names = [name for name, number in numbers.items() if number == value and value > 1]
    sizes = [name for name in names if "stride" not in name.lower()]
    return f"{(sizes or names)[0]} = " if names else ""
