"""Graded tests under pytest: which are expected, in what order they run, and how each came out.

The run keeps the outcomes, not pytest. A test counts as passed only if it ran to its end without a failure; a skip, an
xfail or a deselection never does.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from drills.errors import DrillError
from drills.fixture import Drill
from drills.judge import pointed
from drills.judge.failures import GradedFailure
from drills.lesson_run import GradedTest, LessonRun
from drills.report.model import LEVELS, Failure, TestResult
from drills.run import Run
from drills.session import GRADED_FILE

GRADED = "graded"
RUNS_EVERYTHING = ("memory", "compile")
"""Levels that any test can fail: to grade one of them alone, all tests are run."""


class Grading:
    """Collects, orders, feeds and records the graded tests of one run."""

    def __init__(self, run: Run | None) -> None:
        self.run = run

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Registers the marker."""
        config.addinivalue_line("markers", f"{GRADED}(exercise, level): a graded test")

    def lesson_of(self, path: Path) -> LessonRun | None:
        """The lesson whose tests this file holds."""
        match = GRADED_FILE.match(path.name)
        return self.run.lessons.get(match[1]) if match and self.run else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Note every graded test as expected; drop what was not asked for; put the compile tests last."""
        kept, dropped = [], []
        for item in items:
            lesson = self.lesson_of(item.path)
            keep = self.expect(lesson, item) if lesson else not GRADED_FILE.match(item.path.name)
            (kept if keep else dropped).append(item)
        items[:] = sorted(kept, key=lambda item: is_compile(item))
        if dropped:
            config.hook.pytest_deselected(items=dropped)

    def expect(self, lesson: LessonRun, item: pytest.Item) -> bool:
        """Whether this test shall run; if so it is expected from now on."""
        marker = item.get_closest_marker(GRADED)
        if marker is None or len(marker.args) != 2 or marker.args[1] not in LEVELS:
            self.run.error = self.run.error or f"{item.nodeid} does not say which exercise and level it grades"
            return False
        exercise, level = marker.args
        if exercise not in lesson.wanted or not self.level_wanted(level):
            return False
        name = f"{lesson.lesson.stem}::{item.name}"
        lesson.tests[item.nodeid] = GradedTest(name, title(item), exercise, level)
        return True

    def level_wanted(self, level: str) -> bool:
        """Whether tests of this level are run."""
        asked = self.run.request.level
        return asked is None or level == asked or asked in RUNS_EVERYTHING

    @pytest.fixture
    def drill(self, request: pytest.FixtureRequest) -> Drill:
        """The graded lesson, as the test may use it."""
        lesson = self.lesson_of(request.path)
        if lesson is None or request.node.nodeid not in lesson.tests:
            pytest.fail(f"{request.path.name} belongs to no lesson that is graded here", pytrace=False)
        return Drill(lesson, lesson.tests[request.node.nodeid])

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Do not run what cannot be decided any more."""
        lesson = self.lesson_of(item.path)
        test = lesson.tests.get(item.nodeid) if lesson else None
        if test is None:
            return
        self.run.tell(lesson, test.exercise, test.title)
        self.run.turn_to(lesson)
        why = lesson.given_up(test.exercise)
        if why:
            pytest.skip(why)
        failure = lesson.load_failure(test.level)
        if failure is not None:
            raise GradedFailure(failure)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """A test that found nothing may look once more."""
        found = yield
        drill = pyfuncitem.funcargs.get("drill")
        if isinstance(drill, Drill):
            drill.passed()
        return found

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A graded file that cannot be collected is the grader's fault."""
        if report.failed and self.run and GRADED_FILE.search(report.nodeid):
            lines = str(report.longrepr).strip().splitlines()
            self.run.error = self.run.error or f"{report.nodeid} could not be collected: {lines[-1] if lines else ''}"

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo) -> None:
        """Ctrl-C: nothing of this run counts."""
        if self.run is not None:
            self.run.interrupted = excinfo.type is KeyboardInterrupt

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
        """Record the outcome; show a failure as what was got and expected, without a traceback."""
        with no_traceback(item.config, call.excinfo):
            report = yield
        lesson = self.lesson_of(item.path)
        test = lesson.tests.get(item.nodeid) if lesson else None
        if test is None:
            return report
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, GradedFailure):
            error.failure = pointed(error.failure, lesson.lesson)
            report.longrepr = plain_text(error.failure)
        elif isinstance(error, DrillError):
            self.run.error = self.run.error or str(error)
            item.session.shouldstop = str(error)
        elif error is not None and not isinstance(error, (AssertionError, pytest.skip.Exception)):
            self.run.error = self.run.error or f"{test.id} broke: {type(error).__name__}: {error}"
        result = result_of(test, report, error)
        if result is not None:
            result.printed = lesson.printed.get(test.id, "")
            if result.printed:
                report.sections.append(("printed by graded code", result.printed))
            lesson.results[item.nodeid] = result
            self.run.done += report.when == "call"
        return report


@contextlib.contextmanager
def no_traceback(config: pytest.Config, excinfo: pytest.ExceptionInfo | None) -> Iterator[None]:
    """Within, pytest makes nothing of a graded failure's traceback, which nobody sees: that takes it 60 ms."""
    before = config.getoption("tbstyle", "auto")
    if excinfo is not None and isinstance(excinfo.value, GradedFailure):
        config.option.tbstyle = "value"
    try:
        yield
    finally:
        config.option.tbstyle = before


def is_compile(item: pytest.Item) -> bool:
    """Whether this is a test of the compile level."""
    marker = item.get_closest_marker(GRADED)
    return marker is not None and marker.args[1:] == ("compile",)


def title(item: pytest.Item) -> str:
    """ "test_two_states_merge_as_one[float16]" as a learner reads it: "two states merge as one, float16".

    pytest joins the values of several parameters with hyphens. A number goes with the name of its parameter: "N = 5".
    """
    name, _, case = item.name.removeprefix("test_").partition("[")
    words, values = name.replace("_", " "), re.split(r"(?<=[^-])-", case.removesuffix("]"))
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if len(values) == len(parameters):
        values = [_value(*parameter, text) for parameter, text in zip(parameters.items(), values, strict=True)]
    return ", ".join([words, *filter(None, values)])


def _value(name: str, value: object, text: str) -> str:
    """A parameter's value, which pytest calls `text`; what has no name is called by its parameter's and a number."""
    if re.fullmatch(rf"{re.escape(name)}\d+", text):
        return f"{name} = {value}"
    return f"{name} = {text}" if re.fullmatch(r"-?\d[\d.^]*", text) else text


def result_of(test: GradedTest, report: pytest.TestReport, error: BaseException | None) -> TestResult | None:
    """The result that this phase of a test decides; None if it decides nothing."""
    result = TestResult(test.id, test.title, test.exercise, test.level, "not run", seconds=report.duration)
    if isinstance(error, GradedFailure):
        result.outcome, result.failure, result.title = "failed", error.failure, error.title or test.title
    elif isinstance(error, AssertionError):
        result.outcome, result.failure = "failed", Failure("assertion", test.level, got=str(error).split("\n")[0])
    elif error is None and (report.when != "call" or hasattr(report, "wasxfail")):
        return None
    elif isinstance(error, pytest.skip.Exception):
        result.failure = Failure("not_run", test.level, got=str(error))
    elif error is None and report.passed:
        result.outcome = "passed"
    return result


def plain_text(failure: Failure) -> str:
    """The failure for pytest's own screen."""
    parts = ("called", "got", "expected", "likely", "read")
    lines = [f"{part:<9} {getattr(failure, part)}" for part in parts if getattr(failure, part)]
    if failure.line is not None:
        lines.insert(min(1, len(lines)), f"line {failure.line:<4} {failure.source}")
    return "\n".join([f"{failure.level}: {failure.kind}", *lines])
