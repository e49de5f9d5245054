"""The pytest plugin: `python -m pytest` grades solutions/, `--target mine` what the learner wrote.

`grade.py` runs pytest in its own process and brings its own run; then this module has nothing to do. Must not import
torch: the engine's own tests start with it too.
"""

from __future__ import annotations

import argparse
import contextlib
import sys

import pytest

from drills import catalog
from drills.by_hand import ByHand


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for `python -m pytest`."""
    group = parser.getgroup("drills", "what is graded")
    default = "solutions" if catalog.has_solutions() else "mine"
    group.addoption("--target", default=default, metavar="DIR", help="folder that is graded: solutions, mine, …")
    group.addoption("--device", default="auto", choices=("auto", "cpu", "cuda"), help="where kernels run")
    group.addoption("--seed", type=int, default=None, help="repeats a run's inputs")
    # pytest-timeout has an option of this name; where it is installed, one option serves both.
    with contextlib.suppress(ValueError, argparse.ArgumentError):
        group.addoption("--timeout", type=float, default=None, help="seconds for one call of graded code (default: 10)")


def pytest_configure(config: pytest.Config) -> None:
    """Registers grading by hand, unless a session has brought its own grading."""
    graded_tests = sys.modules.get("drills.graded_tests")
    plugins = config.pluginmanager.get_plugins()
    if graded_tests is None or not any(isinstance(plugin, graded_tests.Grading) for plugin in plugins):
        config.pluginmanager.register(ByHand(config))
