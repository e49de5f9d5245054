"""Grading for `python -m pytest`: a run of its own, begun when the first graded file is about to be collected.

Must never import torch before that, so that the engine's own tests start fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drills import catalog, session
from drills.errors import GRADER_FAILED, DrillError, WrongUse
from drills.request import Request

if TYPE_CHECKING:
    from drills.run import Run


class ByHand:
    """Starts and ends the run, and says what went wrong with it."""

    def __init__(self, config: pytest.Config) -> None:
        session.prepare()
        self.config = config
        self.run: Run | None = None

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Start the processes before the first graded test file is imported."""
        graded = isinstance(collector, pytest.Module) and session.GRADED_FILE.match(collector.path.name)
        if graded and self.run is None:
            from drills.graded_tests import Grading

            try:
                self.run = start(self.config, collector.path.parent.parent)
            except DrillError as error:
                pytest.exit(str(error), returncode=error.code)
            self.config.pluginmanager.register(Grading(self.run))

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
        """End the processes."""
        if self.run is not None:
            self.run.__exit__()


def start(config: pytest.Config, root: Path) -> Run:
    """A run of every lesson of which the target folder has a file."""
    from drills.run import Run

    option = config.option
    target = root / option.target
    lessons = [one for one in catalog.lessons(root) if not one.missing and (target / one.solution.name).exists()]
    selections = tuple(catalog.Selection(one, one.exercises) for one in lessons)
    if not selections:
        raise WrongUse(f"--target {option.target}: no lesson's file is there")
    request = Request(selections, target, None, option.device, option.timeout or 10.0, option.seed)
    sources = {one.lesson.stem: session.inspect(one, request) for one in selections}
    for found in sources.values():
        if found.problem:
            where = f":{found.problem.line}" if found.problem.line else ""
            raise WrongUse(f"{found.path}{where} {found.problem.says}\n{found.problem.caret()}".rstrip())
    return Run(request, sources, selections).__enter__()
