"""A compile gate whose processes are started by exec, and launches written by hand, for the tests of the gate."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from drills.instruments.gate import CompileGate
from drills.instruments.notes import Launch

ROOT = Path(__file__).parents[2]
SERVE = "import socket, sys; from drills.instruments.gate_worker import serve; serve(socket.socket(fileno=%d), {})"


class Starter:
    """`start` for a gate. TRITON_INTERPRET is set, as it is where a worker runs, and home cannot be written to.

    first: a statement that the process runs before it serves.
    """

    def __init__(self, first: str = "pass") -> None:
        self.first = first
        self.processes: list[subprocess.Popen] = []

    def __call__(self) -> socket.socket:
        here, there = socket.socketpair()
        with there:
            environment = {**os.environ, "TRITON_INTERPRET": "1", "HOME": "/proc", "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-c", f"{self.first}; {SERVE % there.fileno()}"]
            self.processes.append(subprocess.Popen(command, pass_fds=[there.fileno()], env=environment))
        return here

    def all_gone(self) -> bool:
        """Whether every process that was started ends by itself."""
        return [process.wait(10) for process in self.processes] == [0] * len(self.processes)


def launch(kernel: str, file: Path, signature: dict[str, Any], divisible: str = "", **more: Any) -> Launch:
    """A launch of the function of that name. signature: parameter → type, or ("constant", value) for a constant."""
    kinds = {name: "constexpr" if isinstance(kind, tuple) else kind for name, kind in signature.items()}
    constants = {name: kind[1] for name, kind in signature.items() if isinstance(kind, tuple)}
    constants |= more.pop("parts", {})
    return Launch(kernel, line_of(kernel, file), (1, 1, 1), kinds, constants, divisible.split(), **more)


def line_of(kernel: str, file: Path) -> int:
    """The line of the function of that name."""
    lines = file.read_text().splitlines()
    return next(n for n, text in enumerate(lines, 1) if text.strip().startswith(f"def {kernel}("))


def one(gate: CompileGate, file: Path, *launches: Launch, exercise: str = "x", timeout: float = 30.0) -> list:
    """Submit and wait."""
    gate.submit(file, exercise, launches)
    return gate.reports(exercise, timeout)


C = "constant"
PLAIN = {"x": "*fp32", "n": "i32", "B": (C, 64)}
