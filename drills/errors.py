"""The errors that the command line turns into one line and an exit code.

Every other exception that reaches the command line is a fault of the grader itself. Must never import anything heavy.
"""

from __future__ import annotations

PASSED, FAILED, WRONG_USE, GRADER_FAILED, NO_ISOLATION, NOTHING_GRADED = range(6)
"""Exit codes of `grade.py`."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C, when the user has been told already how far it came."""


class DrillError(Exception):
    """Something to tell the user in one line. `code` is the exit code."""

    code = GRADER_FAILED


class WrongUse(DrillError):
    """The command cannot be carried out as it was given: an unknown lesson, a missing folder."""

    code = WRONG_USE


class GraderFailed(DrillError):
    """The grader, its files or its environment are broken. Never the graded code's fault."""

    code = GRADER_FAILED


class NoIsolation(DrillError):
    """The isolation that was asked for is not to be had on this machine."""

    code = NO_ISOLATION


class NothingGraded(DrillError):
    """There was nothing to grade."""

    code = NOTHING_GRADED
