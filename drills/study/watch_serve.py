"""The process behind `watch` that grades: torch, Triton and the lessons stay loaded in it from one save to the next.

    python -m drills.study.watch_serve SOCKET ISOLATION PARENT

Requests come and results go as one line of JSON each; SIGINT stops the grading that runs. It holds a nursery, so
graded code runs in workers here as everywhere. Must never read the keyboard or write to the screen, and never outlives
`watch`.
"""

from __future__ import annotations

import gc
import json
import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import IO, Any

from drills import catalog, session
from drills.errors import DrillError
from drills.report import json_file
from drills.report.model import Grade
from drills.request import Progress, Request
from drills.sandbox import limits
from drills.sandbox.isolation import Isolation
from drills.sandbox.nursery import Nursery

QUICK_EXPLAINING = 0.4
"""Seconds for the causes of a failure in the first verdict; the whole one takes its time."""


class Stopper:
    """Turns SIGINT into KeyboardInterrupt, once a run and only while one runs: tidying up is never cut short."""

    def __init__(self) -> None:
        self.asked = False
        self.armed = False
        signal.signal(signal.SIGINT, self._asked)

    def _asked(self, *_: object) -> None:
        self.asked = True
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def look(self) -> None:
        """KeyboardInterrupt if the run is to stop: for a signal that could not be raised, or was swallowed."""
        if self.asked:
            self.armed = False
            raise KeyboardInterrupt


class Server:
    """stream: where requests come from and results go. nursery: kept for all runs."""

    def __init__(self, stream: IO[str], nursery: Nursery) -> None:
        self.stream = stream
        self.nursery = nursery
        self.stopper = Stopper()
        self.device = ""

    def serve(self) -> None:
        """Answer requests until `watch` hangs up."""
        self.say({"ready": True})
        for line in self.stream:
            self.answer(json.loads(line))

    def answer(self, request: dict[str, Any]) -> None:
        """Grade what is asked for. The last word on a run is "whole", "stopped" or "broken"."""
        run = request["run"]
        self.stopper.asked, self.stopper.armed = False, True
        try:
            self.grade(request)
        except KeyboardInterrupt:
            self.say({"run": run, "stopped": True})
        except (DrillError, ImportError, OSError) as error:
            self.say({"run": run, "broken": str(error) or type(error).__name__})
        finally:
            self.stopper.armed = False
            self.bury()
            gc.collect()

    def grade(self, request: dict[str, Any]) -> None:
        """Sends the first verdict, if an exercise is named for it, and the whole one; both on the same inputs."""
        lesson = catalog.Entry(request["lesson"])
        seed = secrets.randbits(32)
        if request["first"]:
            quick = self.run(request, catalog.Selection(lesson, (request["first"],)), seed, gate=False)
            self.say({"run": request["run"], "first": json_file.as_tree(quick)})
        whole = self.run(request, catalog.Selection(lesson, tuple(request["exercises"])), seed, gate=True)
        self.stopper.armed = False
        self.say({"run": request["run"], "whole": json_file.as_tree(whole)})

    def run(self, request: dict[str, Any], selection: catalog.Selection, seed: int, gate: bool) -> Grade:
        """One grading. The seed is given when the nursery is long there, and none of its processes is told."""

        def tell(now: Progress) -> None:
            self.stopper.look()
            title = f"{now.exercise} · {now.title}"
            self.say({"run": request["run"], "title": title, "done": now.done, "total": now.total})

        asked = Request(
            selections=(selection,),
            target=Path(request["target"]),
            device=self.device or request["device"],
            timeout=request["timeout"],
            seed=seed,
            isolation=self.nursery.isolation,
            progress=tell,
            gate=gate,
            **({} if gate else {"explaining": QUICK_EXPLAINING, "stop_early": True}),
        )
        grade = session.grade(asked, self.nursery)
        self.stopper.look()
        if grade.seed is not None:
            self.device = grade.device  # found out once
        return grade

    def bury(self) -> None:
        """End what an interrupted run may have left behind."""
        for nursery in self.nursery.branches.values():
            for number in set(range(1, nursery.last + 1)) - set(nursery.ended):
                nursery.kill(number)
                nursery.wait(number, seconds=1.0)

    def say(self, message: dict[str, Any]) -> None:
        """Send one message, whole: a signal that comes meanwhile counts afterwards."""
        armed, self.stopper.armed = self.stopper.armed, False
        self.stream.write(json.dumps(message) + "\n")
        self.stream.flush()
        self.stopper.armed = armed
        if armed:
            self.stopper.look()


def main() -> None:
    """Start the nursery before anything is loaded that a worker must not see; then load, and serve."""
    descriptor, isolation, parent = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limits.die_with_parent(int(parent))
    os.set_inheritable(int(descriptor), False)
    stream = socket.socket(fileno=int(descriptor)).makefile("rw", encoding="utf-8")
    session.prepare()
    nursery = Nursery(Isolation.named(isolation))
    try:
        nursery.branch("cpu")
        nursery.branch("compile")
        warm()
        Server(stream, nursery).serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # `watch` is gone
    finally:
        nursery.close()


def warm() -> None:
    """Load what every grading needs: pytest, the judge, the lessons."""
    import drills.assemble
    import drills.graded_tests  # noqa: F401
    from drills.run import load_facts

    for lesson in catalog.lessons():
        if not lesson.missing:
            load_facts(lesson)
    gc.freeze()


if __name__ == "__main__":
    main()
