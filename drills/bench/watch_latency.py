"""How long a learner waits: from a save to the first verdict of `watch`, and to the whole one.

    python -m drills.bench.watch_latency [LESSON …]

Works on a copy of the repository whose mine/ holds the solutions: each save changes one exercise, first to other right
text, then to a known wrong answer. Prints the median and the longest of each lesson; exits with 1 if a median of the
first verdict is above the limit.
"""

from __future__ import annotations

import ast
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from drills import catalog
from drills.catalog import ROOT, Entry

LIMIT = 1.5
WRONG = 4
PATIENCE = 120.0
COPIED = ("drills", "content", "solutions", "tests", "grade.py")


class Watch:
    """A running `watch` without a terminal, whose lines are timed as they come."""

    def __init__(self, root: Path, lesson: Entry) -> None:
        command = [sys.executable, "grade.py", "watch", lesson.short, "--device", "cpu"]
        self.process = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""

    def until(self, mark: str) -> float:
        """The time at which what is printed holds `mark`; it and what is before it are dropped."""
        deadline = time.monotonic() + PATIENCE
        while mark not in self.text:
            self.text += (self.process.stdout.read() or b"").decode()
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"watch printed no {mark!r}: {self.text!r}")
            time.sleep(0.002)
        self.text = self.text.partition(mark)[2]
        return time.monotonic()


def main() -> int:
    """Measure and print."""
    selections = catalog.select(sys.argv[1:])
    slow = False
    print(f"{'lesson':8}{'answer':8}{'saves':>6}  {'first verdict':>20}  {'whole':>20}   median and longest, s")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in COPIED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, root / name)
        shutil.copytree(ROOT / "solutions", root / "mine")
        for selection in selections:
            for kind, times in measure(root, selection.lesson).items():
                firsts, wholes = zip(*times, strict=True)
                slow = slow or statistics.median(firsts) > LIMIT
                figures = "  ".join(f"{statistics.median(all_):13.2f} {max(all_):6.2f}" for all_ in (firsts, wholes))
                print(f"{selection.lesson.short:8}{kind:8}{len(times):6}  {figures}", flush=True)
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores:
        print(f"the machine was busy with other work too: load {load:.0f} on {cores} cores")
    print(f"limit {LIMIT} s for the first verdict: {'exceeded' if slow else 'kept'}")
    return 1 if slow else 0


def measure(root: Path, lesson: Entry) -> dict[str, list[tuple[float, float]]]:
    """Right and wrong saves of one lesson → seconds to the first and to the whole verdict of each."""
    file = root / "mine" / lesson.solution.name
    right = lesson.solution.read_text(encoding="utf-8")
    watch = Watch(root, lesson)
    times: dict[str, list[tuple[float, float]]] = {"right": [], "wrong": []}
    try:
        watch.until("passed\n")
        for name in lesson.exercises:
            times["right"].append(save(watch, file, touched(right, name)))
        for answer in wrong_answers(lesson):
            file.write_text(right, encoding="utf-8")
            watch.until("passed\n")
            times["wrong"].append(save(watch, file, answer.read_text(encoding="utf-8")))
    finally:
        watch.process.terminate()
        watch.process.wait()
        file.write_text(right, encoding="utf-8")
    return times


def save(watch: Watch, file: Path, text: str) -> tuple[float, float]:
    """Save the text; seconds until the first verdict and until the whole one."""
    begun = time.monotonic()
    file.write_text(text, encoding="utf-8")
    return watch.until(f" {file.stem.split('_', 1)[0]}.") - begun, watch.until("passed\n") - begun


def touched(text: str, name: str) -> str:
    """The text with a comment more in one function."""
    function = next(one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef) and one.name == name)
    lines = text.split("\n")
    lines.insert(function.end_lineno - 1, " " * function.body[-1].col_offset + "# as before")
    return "\n".join(lines)


def wrong_answers(lesson: Entry) -> list[Path]:
    """A few of the lesson's known wrong answers, evenly out of all."""
    found = sorted((ROOT / "tests" / "answers" / "wrong" / lesson.stem).glob("*.py"))
    return found[:: max(1, len(found) // WRONG)][:WRONG]


if __name__ == "__main__":
    sys.exit(main())
