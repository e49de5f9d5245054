"""What the instruments report about one call, as plain data that crosses the wire as JSON.

Nothing here imports torch or triton: the parent reads these notes, the worker writes them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


def as_tree(value: Any) -> Any:
    """dataclasses.asdict, by nothing that graded code could replace: dataclasses, lists, tuples and dicts as a tree."""
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: as_tree(item) for name, item in vars(value).items()}
    if type(value) is dict:
        return {name: as_tree(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return [as_tree(item) for item in value]
    return value


@dataclass
class Traffic:
    """Bytes that one launch moved for one tensor argument.

    loaded, stored: unmasked bytes, every load and store counted, lanes of one access that share an address once.
    distinct_loaded, distinct_stored: bytes of the tensor touched at least once.
    elsewhere: of the bytes loaded, those beyond what a workspace held that came from the inputs or from kernels when
        the launch began.
    """

    loaded: int = 0
    distinct_loaded: int = 0
    stored: int = 0
    distinct_stored: int = 0
    elsewhere: int = 0


@dataclass
class Launch:
    """One kernel launch.

    line: line of the kernel's `def` (or of its first decorator) in the graded file.
    signature: parameter → Triton type ("*fp16", "i32", "constexpr" …) as the JIT would specialise it; a tuple
        argument is a list of types, nested where it is; a NamedTuple is {"tuple": [types], "fields": [names]}.
    constants: constexpr parameter → value as `constants.encode` writes it, None arguments and integers equal to 1
        included where the JIT folds them. A part of a tuple argument is named "x.0", "x.1" ….
    divisible: parameters (or parts) whose value (or address) the JIT would know to be a multiple of 16.
    options: compile options other than num_warps and num_stages that the launch passed: num_ctas, maxnreg ….
    closure: what a kernel nested in a function captured, by name, as `constants.closure_of` writes it.
    names: what the names in the kernel stand for (see `meant`); none where nothing is interpreted.
    tensors: pointer parameter → name of the graded function's argument, "result 0", or "workspace 0".
    shapes: pointer parameter → sizes of the tensor that was passed.
    """

    kernel: str
    line: int
    grid: tuple[int, ...]
    signature: dict[str, Any]
    constants: dict[str, Any]
    divisible: list[str]
    num_warps: int = 4
    num_stages: int = 3
    traffic: dict[str, Traffic] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    closure: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass
class Finding:
    """Something wrong that an instrument saw. `kind` as in report.model.Failure; got and likely are sentences."""

    kind: str
    got: str
    likely: str = ""
    expected: str = ""
    line: int | None = None
    source: str = ""


@dataclass
class Notes:
    """All that was seen in one call.

    copies: what torch copied of values around the kernels, as launches with a name, traffic and tensors only.
    told: what kernels were told, as `told.Told` writes it; none where nothing is interpreted.
    """

    launches: list[Launch] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    printed: str = ""
    seconds: float = 0.0
    copies: list[Launch] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def to_json(self) -> dict:
        """A JSON-able tree."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: dict) -> Notes:
        """The notes that `to_json` wrote; TypeError, KeyError or ValueError if the tree has another form."""
        launches, copies = ([_launch(item) for item in tree[name]] for name in ("launches", "copies"))
        findings = [Finding(**item) for item in tree["findings"]]
        told = [str(one) for one in tree["told"]]
        return cls(launches, findings, str(tree["printed"]), float(tree["seconds"]), copies, told)


def _launch(tree: dict) -> Launch:
    traffic = {name: Traffic(**one) for name, one in tree["traffic"].items()}
    return Launch(**{**tree, "traffic": traffic})


@dataclass
class CallOptions:
    """How the worker runs one call.

    order_seed: shuffles the programs of a launch; None runs them in order. Where it is odd, lanes change their poison.
    masked_fill: what masked-off lanes without `other` read: "poison" (NaN and a large number by turns), "zero", or
        "low" (-inf, and 0 in integers).
    empty_fill: what torch.empty is filled with: "poison" or "zero".
    """

    order_seed: int | None = 0
    masked_fill: str = "poison"
    empty_fill: str = "poison"


@dataclass(frozen=True)
class Status:
    """Whether the instruments are on. note: why not, or what they cover. versions: "triton", "torch" …"""

    on: bool
    note: str = ""
    versions: dict[str, str] = field(default_factory=dict)
