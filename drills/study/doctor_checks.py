"""What `doctor` looks at, a function each, in the order in which trouble is best put right.

Must never import torch or Triton: what may be broken is tried out in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from drills import catalog, source
from drills.catalog import ROOT
from drills.errors import DrillError
from drills.sandbox import isolation
from drills.study import progress
from drills.study.environment import SHOWN_PYTHONS, newer_python

PACKAGES = ("torch", "triton", "numpy", "pytest", "safetensors", "rich", "watchfiles")
OLDEST = {"torch": (2, 11), "triton": (3, 6), "numpy": (2, 0)}
TESTED = (("2.13", "3.7"), ("2.11", "3.6"))
"""torch and triton that are tested together."""

INSTALL = "python -m pip install -r requirements.txt"
PATIENCE = 180.0


@dataclass(frozen=True)
class Finding:
    """state: "ok", "problem", or "note" for what is missing and not needed. todo: what to do, "" if nothing."""

    state: str
    says: str
    todo: str = ""


def python() -> list[Finding]:
    """The system and Python's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    found = [Finding("ok", f"Python {version} at {sys.executable}")]
    if newer_python():
        found = [Finding("note", f"Python {version}: newer than the versions tested, {SHOWN_PYTHONS}")]
    if sys.platform != "linux":
        todo = "WSL and Colab are Linux; pages, hints and quizzes work here too"
        found.append(Finding("problem", f"{sys.platform}: Triton runs on Linux only", todo))
    return found


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in PACKAGES if not _findable(name)]


def _findable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def packages() -> list[Finding]:
    """What is installed, and whether torch and Triton belong together."""
    if missing():
        return [Finding("problem", f"not installed: {', '.join(missing())}", INSTALL)]
    versions = {name: _version(name) for name in PACKAGES}
    shown = ", ".join(f"{name} {versions[name] or '(not from a package)'}" for name in PACKAGES[:3])
    for name, least in OLDEST.items():
        if versions[name] and _numbers(versions[name]) < least:
            least_shown = ".".join(map(str, least))
            return [Finding("problem", f"{shown}: {name} is older than {least_shown}", INSTALL)]
    wanted = _wanted_triton()
    if wanted and wanted != versions["triton"]:
        return [
            Finding("problem", f"{shown}: this torch wants triton {wanted}", f"python -m pip install triton=={wanted}")
        ]
    pair = tuple(".".join(versions[name].split(".")[:2]) for name in ("torch", "triton"))
    return [Finding("ok", shown + (": tested together" if pair in TESTED else ": not tested together, see below"))]


def interpreter() -> list[Finding]:
    """Whether a kernel runs in the interpreter, and comes out right."""
    found = _try("interpret", TRITON_INTERPRET="1")
    if trouble := _wrong(found):
        return trouble
    loaded, installed = found["versions"]["triton"], _version("triton")
    if installed and loaded.partition("+")[0] != installed:
        where = Path(found["triton"]).parent
        says = f"triton {installed} is installed, but Python finds {loaded} first, in {where}"
        return [Finding("problem", says, "take that folder off PYTHONPATH, or rename it")]
    if not found["instruments"]:
        says = f"a kernel runs, but without the instruments: {found['note']}"
        return [Finding("problem", says, INSTALL)]
    return [Finding("ok", "a kernel runs in the interpreter, and tl.max, tl.dot and bfloat16 come out right")]


def results() -> list[Finding]:
    """Whether the interpreter computes right and the instruments say nothing of it, whatever the versions."""
    return _wrong(_try("interpret", TRITON_INTERPRET="1"))


def _wrong(found: dict[str, Any]) -> list[Finding]:
    if "broken" in found:
        return [Finding("problem", f"no kernel runs in Triton's interpreter: {found['broken']}", INSTALL)]
    if found["wrong"]:
        says = f"the interpreter computes {', '.join(found['wrong'])} wrong: these versions do not fit each other"
        return [Finding("problem", says, INSTALL)]
    if found["faults"]:
        says = f"the instruments find fault with a right kernel: {found['faults'][0]}. They do not fit these versions"
        return [Finding("problem", says, f"{INSTALL}, with Python {SHOWN_PYTHONS}")]
    return []


def compile_gate() -> list[Finding]:
    """Whether kernels can be compiled for GPUs that are not here."""
    found = _try("compile", TRITON_INTERPRET="0")
    if "broken" in found:
        return [Finding("problem", f"the compile gate: {found['broken']}", INSTALL)]
    return [Finding("ok", f"compile gate: a kernel compiles for {' and '.join(found['targets'])}")]


def isolation_levels() -> list[Finding]:
    """Which levels of isolation there are; the weakest is enough for a learner's own files."""
    best = isolation.best_for_learner().name
    found = [Finding("ok", f"isolation: graded code runs under {best}")]
    for level in isolation.probe():
        if level.holds and level.name != best:
            found.append(Finding("ok", f"isolation {level.name} is there too"))
        elif not level.holds:
            reason = f": {level.reason}" if level.reason else ""
            found.append(Finding("note", f"isolation {level.name} is not to be had{reason}", level.advice))
    return found


def gpu() -> list[Finding]:
    """The GPU, its driver, and whether torch can use it. None is needed."""
    driver = _driver()
    found = _try("gpu")
    if found.get("unloadable"):
        return [Finding("note", "GPU: not looked at, since torch does not load")]
    if "broken" in found:
        return [
            Finding("problem", f"torch finds a GPU and cannot use it: {found['broken']}", "--device cpu grades anyway")
        ]
    if found.get("name"):
        says = f"GPU: {found['name']}, {found['arch']}, driver {driver or 'unknown'}, CUDA {found['built']}"
        return [Finding("ok", says)]
    if driver:
        why = f"torch, built for CUDA {found['built']}, does not see it" if found["built"] else "this torch is for CPUs"
        todo = "kernels run in the interpreter; a torch built for CUDA would use the GPU"
        return [Finding("note", f"GPU with driver {driver}, not used: {why}", todo)]
    return [Finding("note", "no GPU: kernels run in the interpreter, which is all that the drills need")]


def terminal(console: Console) -> list[Finding]:
    """What the screen can show."""
    kind = os.environ.get("TERM", "unset")
    if not console.is_terminal:
        return [Finding("note", "no terminal here: plain lines; watch prints one line a run")]
    says = f"terminal {kind}, {console.width} columns, {'color' if console.color_system else 'no color'}"
    if not console.encoding.lower().startswith("utf"):
        return [Finding("note", f"{says}, encoding {console.encoding}: ASCII only", "set LANG to C.UTF-8, say")]
    if console.width < 80:
        return [Finding("note", f"{says}: made for 80 columns or more", "make the window wider")]
    return [Finding("ok", says)]


def own_files() -> list[Finding]:
    """mine/ and what is kept in it."""
    folder = ROOT / "mine"
    if not folder.is_dir():
        return [
            Finding("problem", "there is no folder mine/", "python grade.py reset l1  makes it, a lesson at a time")
        ]
    found = []
    if not os.access(folder, os.W_OK | os.X_OK):
        todo = f"chmod u+rwx {folder}"
        found.append(Finding("problem", "mine/ cannot be written: reset, undo and progress need it", todo))
    if progress.broken(folder):
        says = f"mine/{progress.NAME} cannot be read: your progress looks empty"
        found.append(Finding("problem", says, "repair or delete it; it holds nothing that grading needs"))
    for lesson in catalog.lessons():
        found += _lesson(lesson)
    return found or [Finding("ok", f"mine/ can be written; the files of {len(catalog.lessons())} lessons are there")]


def _lesson(lesson: catalog.Entry) -> list[Finding]:
    if lesson.missing:
        return [Finding("problem", f"{lesson.stem} lacks {', '.join(lesson.missing)}", "git status, git restore")]
    try:
        problem = source.inspect(lesson.mine, lesson.exercises, lesson.stub).problem
    except DrillError as error:
        return [Finding("problem", str(error), "git status, git restore")]
    if problem is None or problem.kind == "syntax":
        return []
    todo = f"python grade.py reset {lesson.short}" if problem.kind == "missing" else "chmod u+rw the file"
    return [Finding("problem", f"mine/{lesson.stem}.py {problem.says}", todo)]


def _try(what: str, **environment: str) -> dict[str, Any]:
    """What `doctor_smoke` found, or {"broken": why} however it ended."""
    command = [sys.executable, "-m", "drills.study.doctor_smoke", what]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, **environment, "PYTHONPATH": paths}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return json.loads(done.stdout.strip().rpartition("\n")[2])
    except subprocess.TimeoutExpired:
        return {"broken": f"no answer in {PATIENCE:.0f} s"}
    except (OSError, ValueError):
        lines = done.stderr.strip().splitlines()
        return {"broken": lines[-1] if lines else f"the process ended with code {done.returncode}"}


def _version(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _wanted_triton() -> str:
    """The version of Triton that torch's own package asks for; "" if it asks for none."""
    for line in metadata.requires("torch") or []:
        name, _, version = line.partition(";")[0].partition("==")
        if name.strip() == "triton":
            return version.strip()
    return ""


def _driver() -> str:
    """The NVIDIA driver's version, as nvidia-smi has it; "" where there is none."""
    if not shutil.which("nvidia-smi"):
        return ""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""
