#!/usr/bin/env python3
"""The front door: grades your answers, shows pages, hints and quizzes. All of it is in drills/."""

import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() can say in one line that it was stopped

from drills.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
