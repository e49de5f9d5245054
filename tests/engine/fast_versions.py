"""What the tests of fast versions share: a process that compares one with the oracle, and its grade as an answer.

In the interpreter and, where there is a GPU, on it too: some kernels are for Hopper alone. Each in a process of its
own, since Triton decides at import whether it interprets.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from drills import catalog

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no GPU"))]

PRELUDE = """
import importlib
import sys
sys.path[:0] = [{root!r}, {root!r} + "/solutions"]
import torch
from drills.instruments import interpreter
from drills.judge.compare import compare

fast = importlib.import_module("{stem}_fast")
LESSON = importlib.import_module("drills.lessons.{stem}").LESSON
device = sys.argv[1]
if device == "cpu":
    interpreter.install()  # an older Triton's own, with a newer numpy, has no loops over sizes
hopper = device == "cuda" and torch.cuda.get_device_capability()[0] == 9
rng = torch.Generator().manual_seed(1)


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=rng).to(dtype)


def moved(x):
    # On the device, as it lies here: `to` would close gaps, and begin anew.
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return whole.to(device).as_strided(x.shape, x.stride(), x.storage_offset())


def right(name, *args):
    exercise = LESSON.exercise(name)
    there = [moved(one) if torch.is_tensor(one) else one for one in args]
    results = getattr(fast, name)(*there)
    results = tuple(one.cpu() for one in (results if isinstance(results, tuple) else (results,)))
    for one in compare(exercise, args, results, exercise.oracle(*args)):
        case = [(tuple(x.shape), x.dtype) if torch.is_tensor(x) else x for x in args]
        assert one.right, (name, case, one.output.name, one.worst())
"""


def agrees(entry: catalog.Entry, script: str, device: str) -> None:
    """Runs `script` behind the prelude, which must say nothing but "all right"."""
    environment = {**os.environ, "TRITON_INTERPRET": "1" if device == "cpu" else "0"}
    prelude = PRELUDE.format(root=str(catalog.ROOT), stem=entry.stem)
    command = [sys.executable, "-c", prelude + script + '\nprint("all right")', device]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.strip() == "all right", run.stderr[-2000:]


def passes_the_lesson(entry: catalog.Entry, where: Path) -> None:
    """The fast version, graded as a learner's file, passes at every level, the compile gate's too."""
    shutil.copy(entry.fast, where / entry.solution.name)
    names = [f"{entry.short}.{name}" for name in entry.fast_exercises]
    command = [sys.executable, "grade.py", *names, "--target", str(where), "--device", "cpu", "--plain"]
    run = subprocess.run(
        [*command, "--json", str(where / "result.json")],
        cwd=catalog.ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    (lesson,) = json.loads((where / "result.json").read_text())["lessons"]
    states = {
        one["name"]: {name: level["state"] for name, level in one["levels"].items()} for one in lesson["exercises"]
    }
    assert set(states) == set(entry.fast_exercises)
    assert all(state == "passed" for one in states.values() for state in one.values()), states
