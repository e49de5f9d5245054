"""How many submissions a minute a batch grades: at each isolation level, against the same tests with no isolation.

    python -m drills.bench.batch [LESSON] [--count N] [--jobs J] [--grow 100 500 1000]

The class is a mix: of each ten, six right (the solution and other right answers), three wrong ones, and one that ends
its own process. "bare" calls the same tests' code in the grader's own process, one submission after another: no
processes, no compile gate, no second run on public inputs; its pace is given times the workers. Seconds of a core hold
also where other work shares the machine; start and end of everything are included in them.

--grow grades cheap copies (one exercise, values only) and shows, as they are done, the pace and the memory. Memory is
the proportional set size: pages that several processes share are counted once. Measures, decides nothing; must not
write outside its temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from drills import catalog
from drills.catalog import ROOT, Entry
from drills.sandbox import isolation, limits

ANSWERS = ROOT / "tests" / "answers"
LEAVES = "import os\n\n\ndef {name}(*args):\n    os._exit(3)\n"
EVERY = 0.5


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser("python -m drills.bench.batch", description="Submissions a minute.")
    parser.add_argument("lesson", nargs="?", default="l4")
    parser.add_argument("--count", type=int, default=20, help="submissions of the class (20)")
    parser.add_argument("--jobs", type=int, default=2, help="workers (2)")
    parser.add_argument("--levels", nargs="*", default=None, help="isolation levels (all that hold here)")
    parser.add_argument("--grow", type=int, nargs="*", default=[], help="class sizes at which the memory is shown")
    options = parser.parse_args()
    lesson = catalog.find(options.lesson).lesson
    with tempfile.TemporaryDirectory(prefix="drills-bench-") as place:
        if options.grow:
            grow(lesson, Path(place), options)
        else:
            compare(lesson, Path(place), options)
    return 0


def compare(lesson: Entry, place: Path, options: argparse.Namespace) -> None:
    """One line a level, the bare time first."""
    folder = place / "class"
    fill(folder, lesson, options.count, mixed(lesson))
    cores = len(os.sched_getaffinity(0))
    print(f"{options.count} submissions of {lesson.short}, {options.jobs} workers, {cores} cores")
    wall, spent = bare(lesson, folder)
    pace = 60 * options.jobs * options.count / wall
    print(f"{'bare':<10}{pace:6.1f}/min by {options.jobs} processes; {spent / options.count:5.2f} s of a core each")
    for level in options.levels or [one.name for one in isolation.probe() if one.holds]:
        watched = run(lesson.short, folder, place / level, level, options.jobs)
        rate = 60 * options.count / watched.seconds
        print(
            f"{level:<10}{rate:6.1f}/min, {rate / pace:.2f} of bare; {watched.core / options.count:5.2f} s of a core "
            f"each, {watched.core / spent:.1f} x bare; {watched.worker_most >> 20} MiB a worker at most, "
            f"{watched.own_most >> 20} MiB the batch itself; {watched.seconds:.0f} s in all"
        )


def grow(lesson: Entry, place: Path, options: argparse.Namespace) -> None:
    """One line a class size that was passed on the way to the largest."""
    sizes = sorted(options.grow)
    fill(place / "class", lesson, sizes[-1], itertools.cycle([lesson.solution.read_text()]))
    level = (options.levels or [isolation.best().name])[0]
    name = f"{lesson.short}.{lesson.exercises[0]}"
    print(f"{sizes[-1]} submissions of {name} at level value, {options.jobs} workers, isolation {level}")
    left = list(sizes)

    def passed(watched: Watched, done: int) -> None:
        while left and done >= left[0]:
            print(
                f"{left.pop(0):>7} done after {time.monotonic() - watched.begun:7.1f} s: "
                f"{watched.own >> 20} MiB the batch, {watched.worker >> 20} MiB the largest worker",
                flush=True,
            )

    run(name, place / "class", place / "out", level, options.jobs, ("--level", "value"), passed)


def mixed(lesson: Entry) -> Iterator[str]:
    """Texts of submissions, without end: six right, three wrong, one hostile."""
    right = [lesson.solution, *sorted(ANSWERS.glob(f"right/{lesson.stem}/*.py"))]
    wrong = sorted(ANSWERS.glob(f"wrong/{lesson.stem}/*.py"))
    rights, wrongs = itertools.cycle(right), itertools.cycle(wrong[:: max(1, len(wrong) // 7)])
    leaves = "".join(LEAVES.format(name=name) for name in lesson.exercises)
    for kind in itertools.cycle("rrwrrwrrwh"):
        yield leaves if kind == "h" else next(rights if kind == "r" else wrongs).read_text(encoding="utf-8")


def fill(folder: Path, lesson: Entry, count: int, texts: Iterator[str]) -> None:
    """A class of so many submissions."""
    for number, text in zip(range(count), texts, strict=False):
        (folder / f"s{number:05}").mkdir(parents=True)
        (folder / f"s{number:05}" / f"{lesson.stem}.py").write_text(text, encoding="utf-8")


def bare(lesson: Entry, folder: Path) -> tuple[float, float]:
    """Seconds for the class's tests in one process, without those that would end it; and seconds of a core."""
    code = (
        "import os, sys, time\n"
        "os.environ['TRITON_INTERPRET'] = '1'  # read when Triton is imported, here before the graded files are\n"
        "from pathlib import Path\n"
        "from drills import catalog, session\n"
        "from drills.request import Request\n"
        "session.prepare()\n"
        "chosen = tuple(catalog.select([sys.argv[1]]))\n"
        "import torch, pytest, triton, drills.run, drills.assemble\n"
        "begun = time.monotonic()\n"
        "for one in sorted(Path(sys.argv[2]).iterdir()):\n"
        "    if 'os._exit' not in next(one.glob('*.py')).read_text():\n"
        "        grade = session.grade(Request(chosen, one, device='cpu', debug=True, seed=1, explaining=-1))\n"
        "        assert one.name != 's00000' or all(x.state == 'passed' for x in grade.lessons[0].exercises)\n"
        "print(time.monotonic() - begun, file=sys.__stdout__)\n"
    )
    command = [sys.executable, "-c", code, lesson.short, str(folder)]
    before = core_seconds()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1]), core_seconds() - before


def core_seconds() -> float:
    """What all ended children, and theirs, have used of a core."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Watched:
    """What was seen of a batch: seconds in all and of a core; bytes of its own process and of its largest worker."""

    begun: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    core: float = 0.0
    own: int = 0
    own_most: int = 0
    worker: int = 0
    worker_most: int = 0

    def look(self, pid: int) -> None:
        """Measure once."""
        workers = [sum(map(proportional, limits.family(child))) for child in limits.children(pid)]
        self.own, self.worker = proportional(pid), max(workers, default=0)
        self.own_most, self.worker_most = max(self.own_most, self.own), max(self.worker_most, self.worker)


def run(
    name: str,
    folder: Path,
    out: Path,
    level: str,
    jobs: int,
    more: tuple[str, ...] = (),
    told: Callable[[Watched, int], None] = lambda watched, done: None,
) -> Watched:
    """Grades the class as an instructor does, and watches. told: called with the number of results, now and then."""
    command = [sys.executable, "grade.py", "batch", str(folder), name, "-o", str(out), "-j", str(jobs), *more]
    command += ["--isolation", level, "--weak-isolation", "--exit-zero", "--plain"]
    watched, before = Watched(), core_seconds()
    batch = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    ended = threading.Event()
    threading.Thread(target=lambda: (batch.wait(), ended.set()), daemon=True).start()
    while not ended.wait(EVERY):
        watched.look(batch.pid)
        with contextlib.suppress(OSError):
            told(watched, len(os.listdir(out / "results")))
    watched.seconds, watched.core = time.monotonic() - watched.begun, core_seconds() - before
    if batch.returncode != 0:
        raise SystemExit(f"the batch ended with {batch.returncode}")
    return watched


def proportional(pid: int) -> int:
    """Bytes of memory that a process holds, shared pages divided among those who share them; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


if __name__ == "__main__":
    sys.exit(main())
