"""What `doctor` tries out, each in a process of its own: `python -m drills.study.doctor_smoke interpret|compile|gpu`.

Prints one JSON object on its last line: what was found, or "broken" and why. Whatever is wrong with torch or Triton
ends this process alone. Must never be imported by a process that grades.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ROWS, COLUMNS = 16, 16


def interpret() -> dict[str, Any]:
    """Versions as they are loaded, whether the instruments are on, which results are not right, what else is said."""
    os.environ["TRITON_INTERPRET"] = "1"
    from drills import instruments
    from drills.instruments.notes import CallOptions

    status = instruments.install()
    import triton

    found = {"versions": status.versions, "instruments": status.on, "note": status.note, "triton": triton.__file__}
    wrong, faults = set(), set()
    for _ in range(2):  # what a first launch leaves behind is seen at the second
        a, b = matrices()
        with instruments.recording(CallOptions(), {"a": a, "b": b}) if status.on else nullcontext() as record:
            results = launched(a, b)
        wrong.update(wrong_results(a, b, *results))
        faults.update(one.got for one in (record.notes().findings if record else ()))
    return found | {"wrong": sorted(wrong), "faults": sorted(faults)}


def matrices() -> tuple[torch.Tensor, torch.Tensor]:
    """What the smoke kernel gets: small integers."""
    import torch

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-4, 5, (ROWS, COLUMNS), generator=generator).float() for _ in range(2))
    return a, b


def launched(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What it makes of them."""
    import torch

    from drills.study.doctor_kernel import smoke

    largest, product = torch.empty(ROWS), torch.empty(ROWS, COLUMNS)
    halved = torch.empty(ROWS, COLUMNS, dtype=torch.bfloat16)
    smoke[(1,)](a, b, largest, product, halved, ROWS, COLUMNS)
    return largest, product, halved


def wrong_results(
    a: torch.Tensor, b: torch.Tensor, largest: torch.Tensor, product: torch.Tensor, halved: torch.Tensor
) -> list[str]:
    """The parts of it that are not right."""
    import torch

    right = {
        "tl.max": torch.equal(largest, a.max(dim=1).values),
        "tl.dot": torch.equal(product, a @ b),
        "bfloat16": torch.equal(halved, (a / 2).to(torch.bfloat16)),
    }
    return [name for name, holds in right.items() if not holds]


def compile_() -> dict[str, Any]:
    """The targets that the smoke kernel compiles for."""
    from drills.instruments import sources
    from drills.instruments.gate_compile import Specialisation, compile_kernel
    from drills.study import doctor_kernel

    smoke = doctor_kernel.smoke
    sources.know(doctor_kernel.__file__, Path(doctor_kernel.__file__).read_bytes())
    kinds = dict(zip(smoke.arg_names, ["*fp32"] * 4 + ["*bf16"] + ["constexpr"] * 2, strict=True))
    spec = Specialisation(kinds, {(5,): ROWS, (6,): COLUMNS}, ())
    for arch in (80, 90):
        compile_kernel(smoke, spec, arch)
    return {"targets": ["sm_80", "sm_90"]}


def gpu() -> dict[str, Any]:
    """The GPU that torch sees, if any, and whether a kernel runs on it."""
    try:
        import torch
    except ImportError:
        return {"unloadable": True}
    if torch.version.cuda is None:
        return {"built": ""}
    found: dict[str, Any] = {"built": torch.version.cuda, "name": ""}
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        found |= {"name": torch.cuda.get_device_name(), "arch": f"sm_{major}{minor}"}
        found["free"] = torch.cuda.mem_get_info()[0]
        (torch.zeros(8, device="cuda") + 1).sum().item()
    return found


def main() -> None:
    """Print what was found as JSON."""
    try:
        found = {"interpret": interpret, "compile": compile_, "gpu": gpu}[sys.argv[1]]()
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        found = {"broken": f"{type(error).__name__}: {first}".rstrip(": ")}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
