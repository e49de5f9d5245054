#!/usr/bin/env python3
"""The front door: grades your answers, shows pages, hints and quizzes. All of it is in drills/."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() can say in one line that it was stopped

from drills.cli import main  # noqa: E402
from drills.leaving import leave  # noqa: E402

if __name__ == "__main__":
    leave(main())
