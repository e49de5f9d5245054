"""The pytest plugin: `python -m pytest` grades solutions/, `--target mine` what the learner wrote.

`grade.py` runs pytest in its own process and brings its own run; then this module has nothing to do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from drills import catalog, session
from drills.errors import GRADER_FAILED, DrillError, WrongUse
from drills.graded_tests import GRADED_FILE, Grading
from drills.request import Request
from drills.run import Run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for `python -m pytest`."""
    group = parser.getgroup("drills", "what is graded")
    group.addoption("--target", default="solutions", metavar="DIR", help="folder that is graded: solutions, mine, …")
    group.addoption("--device", default="auto", choices=("auto", "cpu", "cuda"), help="where kernels run")
    group.addoption("--seed", type=int, default=None, help="repeats a run's inputs")
    group.addoption("--timeout", type=float, default=10.0, help="seconds for one call of graded code")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the grading, unless a session has brought its own."""
    if not any(isinstance(plugin, Grading) for plugin in config.pluginmanager.get_plugins()):
        config.pluginmanager.register(ByHand(config), "drills-grading")


class ByHand(Grading):
    """Grading for `python -m pytest`: the run begins when the first graded file is about to be collected."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(None)
        self.config = config

    def pytest_pycollect_makemodule(self, module_path: Path) -> None:
        """Start the processes before the first graded test file is imported."""
        if self.run is None and GRADED_FILE.match(module_path.name):
            try:
                self.run = start_by_hand(self.config, module_path.parent.parent)
            except DrillError as error:
                pytest.exit(str(error), returncode=error.code)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A fault of the grader is no success, however many tests passed."""
        if self.run is not None and self.run.error:
            session.exitstatus = GRADER_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the fault was."""
        if self.run is not None and self.run.error:
            terminalreporter.write_line(f"the grader failed: {self.run.error}", red=True)

    def pytest_unconfigure(self) -> None:
        """End them."""
        if self.run is not None:
            self.run.__exit__()


def start_by_hand(config: pytest.Config, root: Path) -> Run:
    """A run of every lesson of which the target folder has a file."""
    option = config.option
    target = root / option.target
    lessons = [one for one in catalog.lessons(root) if one.solution.is_file() and (target / one.solution.name).exists()]
    selections = tuple(catalog.Selection(one, one.exercises) for one in lessons)
    if not selections:
        raise WrongUse(f"--target {option.target}: no lesson's file is there")
    request = Request(selections, target, None, option.device, option.timeout, option.seed)
    sources = {one.lesson.stem: session.inspect(one, request) for one in selections}
    for found in sources.values():
        if found.problem:
            where = f":{found.problem.line}" if found.problem.line else ""
            raise WrongUse(f"{found.path}{where} {found.problem.says}\n{found.problem.caret()}".rstrip())
    return Run(request, sources, selections).__enter__()
