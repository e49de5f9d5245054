"""One run of the grader over some lessons: starts the processes, knows every test that is expected, keeps the results.

Everything that is secret in a run (seed, tests, oracles) comes into being here, after the zygote has been forked.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import secrets
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drills.catalog import Entry, Selection
from drills.errors import GraderFailed, WrongUse
from drills.instruments import gate_folders
from drills.lesson_run import Calls, LessonRun
from drills.lessons.base import Lesson
from drills.request import GATE_CACHE, Progress, Request
from drills.sandbox.client import Worker
from drills.sandbox.limits import Caps
from drills.sandbox.nursery import Nursery
from drills.source import Source

GATE_CAPS = Caps(memory=4 << 30)
CUDA_CAPS = Caps(memory=12 << 30)


@dataclass
class Run:
    """A run. Use it as `with Run(…) as run`.

    wanted: the part of the request that there is something to run of. nursery: one that is kept between runs, or None.
    """

    request: Request
    sources: dict[str, Source]
    wanted: tuple[Selection, ...]
    nursery: Nursery | None = None
    device: str = "cpu"
    seed: int = 0
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    lessons: dict[str, LessonRun] = field(default_factory=dict)
    gate: Any = None
    gate_off: str = ""
    error: str = ""
    interrupted: bool = False
    done: int = 0
    begun: float = field(default_factory=time.monotonic)
    own_nursery: bool = False

    def __enter__(self) -> Run:
        if self.nursery is None and not self.request.debug:
            self.nursery = Nursery(self.request.isolation)
            self.own_nursery = True
        self.device = self._choose_device()
        workers = {one.lesson.stem: self._worker(one.lesson) for one in self.wanted}
        if workers:
            next(iter(workers.values())).start()
        self._start_gate()
        seed = self.request.seed
        self.seed = secrets.randbits(32) if seed is None else seed() if callable(seed) else seed
        for one in self.wanted:
            self.lessons[one.lesson.stem] = self._lesson_run(one, workers[one.lesson.stem])
        return self

    def __exit__(self, *_: object) -> None:
        if self.gate is not None:
            self.gate.hang_up()  # its processes end while the workers do
        for lesson in self.lessons.values():
            lesson.worker.close()
        if self.gate is not None:
            self.gate.close()
            gate_folders.clear(self.mark)
        if self.nursery is not None and self.own_nursery:
            self.nursery.close()

    @property
    def total(self) -> int:
        """How many tests are expected."""
        return sum(len(lesson.tests) for lesson in self.lessons.values())

    def tell(self, lesson: LessonRun, exercise: str, title: str) -> None:
        """Report progress to whoever asked for it."""
        if self.request.progress is not None:
            self.request.progress(Progress(lesson.lesson.stem, exercise, title, self.done, self.total))

    def turn_to(self, lesson: LessonRun) -> None:
        """From here on it is this lesson's turn: end the other lessons' workers."""
        for other in self.lessons.values():
            if other is not lesson:
                other.worker.close()

    def _lesson_run(self, selection: Selection, worker: Calls) -> LessonRun:
        entry = selection.lesson
        return LessonRun(
            lesson=load_facts(entry),
            file=self.request.target / f"{entry.stem}.py",
            source=self.sources[entry.stem],
            chosen=selection.exercises,
            worker=worker,
            device=self.device,
            seed=self.seed,
            gate=self.gate,
            gate_off=self.gate_off,
            explaining_seconds=self.request.explaining,
            makes_twins=not self.request.debug and self.request.level is None,  # a breakpoint is met once
            every_twin=self.request.every_twin,
        )

    def _worker(self, entry: Entry) -> Calls:
        file = self.request.target.resolve() / f"{entry.stem}.py"
        if self.request.debug:
            from drills.sandbox.inprocess import InProcess

            return InProcess(file, self.device)
        caps = CUDA_CAPS if self.device == "cuda" else Caps()
        kept = kernel_cache(file) if self.device == "cuda" and self.request.gate_cache == GATE_CACHE else None
        return Worker(self.nursery.branch(self.device), file, self.device, self.request.timeout, caps, kept)

    def _choose_device(self) -> str:
        import torch

        wanted = self.request.device
        if wanted == "cpu" or (wanted == "auto" and torch.version.cuda is None):
            return "cpu"
        found = self._cuda_works()
        if wanted == "cuda" and not found:
            raise WrongUse("--device cuda: torch finds no CUDA device here")
        return "cuda" if found else "cpu"

    def _cuda_works(self) -> bool:
        """Asked in a process of its own: this one must never initialise CUDA."""
        if self.nursery is None:
            import torch

            return torch.cuda.is_available()
        here, there = socket.socketpair()
        child = self.nursery.fork("probe", {}, CUDA_CAPS, [there])
        there.close()
        here.settimeout(60.0)
        with here, contextlib.suppress(OSError):
            answer = here.recv(16)
            child.kill()
            return answer == b"cuda"
        return False

    def _start_gate(self) -> None:
        if self.request.debug:
            self.gate_off = "not in debug mode"
        elif not self.request.gate or self.request.level not in (None, "compile"):
            self.gate_off = "not asked for"
        else:
            self.nursery.branch("compile")  # loads Triton's compiler while this process gets ready
            from drills.instruments.gate import CompileGate

            asked = self.request
            self.gate = CompileGate(
                self._fork_gate,
                asked.gate_cache,
                lanes=asked.gate_lanes,
                refusals=asked.gate_refusals,
                patient=asked.gate_lanes == 1,
                figures=asked.gate_figures or self._advises(),
            )

    def _advises(self) -> bool:
        """Whether a lesson that is graded says something of how wide its kernels load."""
        exercises = [one for chosen in self.wanted for one in load_facts(chosen.lesson).exercises]
        return any(one.load_width for one in exercises)

    def _fork_gate(self) -> socket.socket:
        here, there = socket.socketpair()
        with there:
            self.nursery.branch("compile").fork("gate", {"mark": self.mark}, GATE_CAPS, [there])
        return here


def kernel_cache(file: Path) -> Path | None:
    """Where Triton keeps what it compiled for a GPU of this file, and of no other; None if no folder can be made."""
    folder = GATE_CACHE.parent / "gpu" / hashlib.sha256(str(file).encode()).hexdigest()[:20]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def load_facts(entry: Entry) -> Lesson:
    """The lesson file's LESSON. GraderFailed if it cannot be had."""
    name = f"drills.lessons.{entry.stem}"
    module = sys.modules.get(name)
    if module is None or getattr(module, "__file__", None) != str(entry.facts):
        spec = importlib.util.spec_from_file_location(name, entry.facts)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise GraderFailed(f"{entry.facts.name} of {entry.short} does not load: {error}") from error
    return module.LESSON
