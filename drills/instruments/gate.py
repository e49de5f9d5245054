"""The parent's side of the compile gate: what tests launched is compiled for real GPU targets while they go on.

It never loads triton or graded code and never raises for what the other side does. A worked example, `start` being a
function that forks a process which calls `gate_worker.serve` on one end of a socket pair and gives back the other:

    gate = CompileGate(start, cache=Path(".drills/gate"))
    gate.submit(Path("mine/l4_merge_states.py"), "merge_state", notes.launches)     # after each test, does not wait
    for report in gate.reports("merge_state", timeout=60):                          # after the last one, waits
        print(report.target, report.kernel, report.ok, report.line, report.error)   # sm_90 merge_kernel False 44 …
    gate.close()

What is compiled how far. Every kernel that was launched goes through Triton's front end and verifier; that is where it
refuses Python that is no kernel. It goes there with so many of its specialisations that it cannot fail for another (see
`gate_alike`). It is run for sm_80, whose front end takes nothing that sm_90's does not. Machine code (so also ptxas,
shared memory, registers, spills, access widths and TF32) takes ten times as long: 0.18 s. It is made of one
specialisation of each family, the one with the largest tile a thread and the most known alignment, which needs the most
shared memory and registers and has the widest accesses; of several if none has the largest of all extents, unless all
tiles are small. Which those are is known once the tests have gone on to another exercise: until then nothing of theirs
goes past the front end. A family is a kernel with its flags, and with what its sizes and types decide in its text:

- if it (or a helper that it calls) uses tl.dot: by warps, stages, and values of 16 bits or of more;
- if it uses atomics: by warps, stages, and the types of what they may change (all, where that is not clear);
- else once, preferably with half floats.

A kernel that is plain, or plain but for tl.dot (see `gate_plain`), has nothing that LLVM and ptxas would refuse: of all
its families' largest, machine code is made of one, for sm_90, and the others are lowered for sm_90 (see `gate_depth`),
for shared memory and TF32. A plain one has nothing that sm_80 lacks either: sm_80 sees its front end only, unless it
needs more shared memory than sm_80 has. With products it is lowered for sm_80 too if it takes much of the shared memory
there, half or, where machine code was made, a quarter. With float32 values a kernel takes twice as much
as with half floats (at most 10 KB more where that is little): where those take a quarter at most, the passes on tiles
are enough. In 114 specialisations of seven answers to lesson 5, sm_80 and sm_90 took the same. What the front end has
taken for one exercise it takes for the others of the file. Figures are therefore of the largest shapes tested.
`thorough=True` makes machine code of everything for both targets.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from drills.instruments.gate_depth import Depth
from drills.instruments.gate_lane import Lane
from drills.instruments.gate_plan import ARCHS, Compilation, Entry, Plan
from drills.instruments.gate_report import LASTING, CompileReport
from drills.instruments.gate_spec import Malformed, checked
from drills.instruments.gate_store import Store
from drills.instruments.gate_text import Text
from drills.instruments.notes import Launch

__all__ = ["CompileGate", "CompileReport"]

SECONDS = {Depth.FRONT: 0.02, Depth.TILES: 0.06, Depth.LOWERED: 0.2, Depth.FULL: 0.3}
LANE_S = 0.15
"""Seconds of one core that a compilation and one more process take."""

MOST_SPECS = 1000
MOST_STARTS = 24
TOO_MANY = f"its tests need more than {MOST_SPECS} compilations: pass sizes as arguments, not as tl.constexpr"
SILENCE = {"ok": False, "kind": "compile_died", "error": "the compiler ended before it answered"}


class CompileGate:
    """Compiles launches in other processes. All methods are for one thread, which alone calls `start`.

    start: gives the socket of a fresh process that serves. cache: folder for answers, None keeps none; refusals: also
    those that say why something does not compile.
    seconds: limit of one compilation. lanes: processes at a time. thorough: see the module.
    patient: nothing is compiled before its exercise's reports are asked for: once all of it is known, less is enough.
    figures: registers, spills and widths are wanted. Without them no machine code is made of kernels that are plain,
    but for tl.dot or altogether.
    """

    def __init__(
        self,
        start: Callable[[], socket.socket],
        cache: Path | None = None,
        *,
        seconds: float = 20.0,
        lanes: int = 3,
        thorough: bool = False,
        refusals: bool = True,
        patient: bool = False,
        figures: bool = True,
    ) -> None:
        self.start = start
        self.store = Store(cache, refusals)
        self.plan = Plan(seconds, thorough, figures)
        self.most_lanes = lanes
        self.changed = threading.Condition()
        self.texts: dict[str, Text] = {}
        self.problems: dict[str, list[CompileReport]] = {}
        self.lanes: list[Lane] = []
        self.starts = 0
        self.patient = patient
        self.waiting: str | None = None
        self.going_on: str | None = None
        self.closing = False

    def submit(self, file: Path, exercise: str, launches: Sequence[Launch]) -> None:
        """Launches that a test of this exercise made, with kernels of this file. Does not wait."""
        try:
            path = str(Path(file).resolve())
            data = Path(path).read_bytes()
        except OSError as error:
            self._refuse(exercise, f"the file cannot be read: {error.strerror}")
            return
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self.texts:
            self.texts[sha256] = Text(data)
        before = self.plan.count(exercise)
        with self.changed:
            self.going_on = exercise
        for launch in launches:
            try:
                spec = checked(launch)
            except Malformed as error:
                self._refuse(exercise, str(error))
                continue
            if self.plan.count(exercise) >= MOST_SPECS:
                self._refuse(exercise, TOO_MANY, "compile_too_many")
                break
            self._add(exercise, Entry(path, data, sha256, self.texts[sha256], spec))
        if self.plan.count(exercise) != before and not self.patient:
            self._staff()

    def reports(self, exercise: str, timeout: float) -> list[CompileReport]:
        """Reports in the order of the launches, of what is compiled (see the module); waits at most `timeout` seconds.

        What is not finished by then is reported as not compiled.
        """
        self.waiting, self.going_on = exercise, None
        until = time.monotonic() + timeout
        while True:
            self._staff()
            with self.changed:
                self.changed.notify_all()
                if self.plan.is_complete(exercise) or time.monotonic() > until:
                    return self.problems.get(exercise, []) + self.plan.reports(exercise, timeout)
                self.changed.wait(0.1)

    def hang_up(self) -> None:
        """Have the processes end; does not wait."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        for lane in self.lanes:
            lane.hang_up()

    def close(self) -> None:
        """End the processes and trim the cache."""
        self.hang_up()
        for lane in self.lanes:
            lane.join(3.0)
        self.store.trim()

    def _add(self, exercise: str, entry: Entry) -> None:
        with self.changed:
            if self.plan.add(exercise, entry) is None:
                return
            for arch in ARCHS:
                for depth in Depth:
                    kept = self.store.get(entry.data, entry.spec, f"sm_{arch}", depth)
                    if kept is not None:
                        entry.settle(arch, depth, kept)
            self.changed.notify_all()

    def _refuse(self, exercise: str, error: str, kind: str = "compile_error") -> None:
        mine = self.problems.setdefault(exercise, [])
        if not any(one.error == error for one in mine):
            mine.append(CompileReport(kernel="?", target=f"sm_{ARCHS[0]}", ok=False, kind=kind, error=error))

    def _staff(self) -> None:
        """As many lanes as the work needs; while tests go on, one core is theirs.

        Starts processes, so it runs in the caller's thread only.
        """
        self.lanes = [lane for lane in self.lanes if lane.is_alive()]
        most = max(1, min(self.most_lanes, len(os.sched_getaffinity(0)) - (self.waiting is None)))
        if len(self.lanes) >= most:
            return
        with self.changed:
            work = self.plan.open(self.waiting if self.patient else None, self.going_on)
        while len(self.lanes) < min(most, lanes_for(work)) and self.starts < MOST_STARTS and not self.closing:
            self.starts += 1
            try:
                lane = Lane(self.start(), self._take, self._done)
            except OSError:
                continue
            self.lanes.append(lane)
            lane.start()
        if work and not self.lanes and self.starts >= MOST_STARTS:
            with self.changed:
                self.plan.give_up("no process to compile in could be started")

    def _take(self) -> Compilation | None:
        """For lanes: the next thing to ask; None when the gate closes."""
        with self.changed:
            while not self.closing:
                job = self.plan.next(self.waiting if self.patient else None, self.going_on)
                if job is not None:
                    return job
                self.changed.wait()
        return None

    def _done(self, job: Compilation, answer: Any) -> None:
        """For lanes: an answer, or None for none."""
        answer = SILENCE if answer is None else answer
        with self.changed:
            made = self.plan.settle(job, answer)
            self.changed.notify_all()
        if made.kind in LASTING:
            self.store.put(job.entry.data, job.entry.spec, made.target, job.depth, {**answer, "id": 0})


def lanes_for(work: list[tuple[Entry, int, Depth]]) -> int:
    """How many processes the work is worth."""
    seconds = sum(SECONDS[depth] for _, _, depth in work)
    return max(1, round(seconds / LANE_S / 2)) if work else 0
