"""What `doctor` tries out, each in a process of its own: `python -m drills.study.doctor_smoke interpret|compile|gpu`.

Prints one JSON object on its last line: what was found, or "broken" and why. Whatever is wrong with torch or Triton
ends this process alone. Must never be imported by a process that grades.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drills.errors import GraderFailed
from drills.sandbox import isolation

if TYPE_CHECKING:
    import torch

    from drills.sandbox.client import Loaded
    from drills.sandbox.outcome import Reply

KERNEL = Path(__file__).with_name("doctor_kernel.py")
SIDE = 16
SECONDS = 60.0


def interpret() -> dict[str, Any]:
    """What a worker, shut in as for grading, makes of the smoke kernel: versions, what is not right, what else is said.

    Twice, since what a first call leaves behind is seen at the second.
    """
    from drills import session

    session.prepare()
    with session.loading():
        from drills.sandbox.client import Call, Worker
        from drills.sandbox.nursery import Nursery
    nursery = Nursery(isolation.best_for_learner())
    try:
        worker = Worker(nursery.branch("cpu"), Path("kernel.py"), "cpu", SECONDS)
        worker.text = KERNEL.read_bytes()  # by a name outside the grader's folder, whose functions show nothing
        expect_none(worker.load())
        wrong, faults = set(), set()
        for _ in range(2):
            a, b = matrices()
            reply = worker.call(Call("smoked", (a, b), ("a", "b")))
            expect_none(reply)
            wrong.update(wrong_results(a, b, *reply.results))
            faults.update(one.got for one in reply.notes.findings)
    finally:
        nursery.close()
    status = worker.status
    found = {"versions": status.versions, "instruments": status.on, "note": status.note}
    return found | {"triton": find_spec("triton").origin, "wrong": sorted(wrong), "faults": sorted(faults)}


def expect_none(answer: Loaded | Reply) -> None:
    """GraderFailed for an exception, or a death."""
    if answer.raised:
        raise GraderFailed(f"{answer.raised.type}: {answer.raised.message}")
    if answer.death:
        raise GraderFailed(answer.death.words)


def matrices() -> tuple[torch.Tensor, torch.Tensor]:
    """What the smoke kernel gets: small integers."""
    import torch

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-4, 5, (SIDE, SIDE), generator=generator).float() for _ in range(2))
    return a, b


def wrong_results(
    a: torch.Tensor, b: torch.Tensor, largest: torch.Tensor, product: torch.Tensor, halved: torch.Tensor
) -> list[str]:
    """The parts of what it makes that are not right."""
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
    spec = Specialisation(kinds, {(5,): SIDE, (6,): SIDE}, ())
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
        found = {
            "broken": first if isinstance(error, GraderFailed) else f"{type(error).__name__}: {first}".rstrip(": ")
        }
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
