"""One grading, from a request to a grade. The front door of the engine.

Runs pytest in this process on the graded tests, with its own plugin and none of the user's. Must never import a
graded file, and imports torch only if something is to be run.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from drills import source
from drills.catalog import Selection
from drills.report.model import Grade
from drills.request import Progress, Request
from drills.sandbox import later
from drills.source import Source

if TYPE_CHECKING:
    from drills.run import Run
    from drills.sandbox.nursery import Nursery

__all__ = ["Progress", "Request", "grade", "inspect", "prepare"]

GRADED_FILE = re.compile(r"test_(l\d+_\w+)\.py$")
"""The name of a file of graded tests; the group is the lesson's stem."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One thread each: graded cases are small, and a process with threads cannot be forked safely."""


AUTOLOAD = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
UNUSED_PLUGINS = (
    "cacheprovider",
    "debugging",
    "doctest",
    "faulthandler",
    "junitxml",
    "logging",
    "pastebin",
    "stepwise",
    "threadexception",
    "unittest",
    "unraisableexception",
)
"""Parts of pytest that grading does not need, and that cost time (two full collections of garbage) or print."""


def prepare() -> None:
    """What must be in the environment before torch is imported."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def grade(request: Request, nursery: Nursery | None = None) -> Grade:
    """Grade what is asked for. DrillError if that cannot be done; a fault met on the way stands in `grader_error`.

    nursery: one that is kept between gradings; without it, one is started and ended here.
    """
    sources = {one.lesson.stem: inspect(one, request) for one in request.selections}
    wanted = [one for one in request.selections if is_begun(one, sources[one.lesson.stem])]
    if not wanted:
        from drills.assemble import blank

        return blank(request, sources)
    prepare()
    with loading():
        from drills.assemble import grade_of
        from drills.run import Run

    with Run(request, sources, wanted, nursery) as run:
        run_tests(run)
        return grade_of(run)


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Within, torch is loaded: Python does not look for garbage among what stays, neither now nor later.

    That takes a fifth of the time of loading it, and its parts that grading never uses another. Where torch is there
    already, some of what is there may be garbage.
    """
    if "torch" in sys.modules:
        yield
        return
    gc.disable()
    try:
        with later.without_parts():
            yield
    finally:
        gc.enable()
        gc.freeze()


def inspect(selection: Selection, request: Request) -> Source:
    """The graded file of a lesson, read but not run."""
    entry = selection.lesson
    return source.inspect(request.target / f"{entry.stem}.py", entry.exercises, entry.stub)


def is_begun(selection: Selection, found: Source) -> bool:
    """Whether there is an exercise to run among those chosen."""
    return not found.problem and any(found.function(name).state == "written" for name in selection.exercises)


def run_tests(run: Run) -> None:
    """pytest on the graded tests, in this process: quiet, and deaf to the user's own settings and plugins."""
    import pytest

    from drills.graded_tests import Grading

    files = [str(one.lesson.tests) for one in run.wanted]
    root = run.wanted[0].lesson.root
    arguments = [*files, f"--rootdir={root}", "-c", os.devnull, "-s", "--strict-markers", "-p", "no:terminal"]
    # What a conftest.py registers is here already, and to look for more costs more than to load the tests.
    arguments += ["--import-mode=importlib", "--noconftest", f"--confcutdir={run.wanted[0].lesson.tests.parent}"]
    for unused in UNUSED_PLUGINS:
        arguments += ["-p", f"no:{unused}"]
    arguments += ["-x"] if run.request.stop_early else []
    with own_environment(), own_tests():
        code = pytest.main(arguments, plugins=[Grading(run)])
    if run.interrupted:
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        run.error = run.error or f"the graded tests could not be run (pytest: {pytest.ExitCode(code).name.lower()})"


@contextlib.contextmanager
def own_tests() -> Iterator[None]:
    """Graded tests are loaded anew, and forgotten: another repository graded in this process has the same names."""
    others = _graded_tests()
    for name in others:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in _graded_tests():
            del sys.modules[name]
        sys.modules.update(others)


def _graded_tests() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if GRADED_FILE.match(f"{name.rpartition('.')[2]}.py")]
    return {name: sys.modules[name] for name in names}


@contextlib.contextmanager
def own_environment() -> Iterator[None]:
    """The environment that pytest runs in; the user's is put back afterwards."""
    before = {name: os.environ.get(name) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", AUTOLOAD)}
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.pop("PYTEST_PLUGINS", None)
    os.environ[AUTOLOAD] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
