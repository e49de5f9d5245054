#!/usr/bin/env python3
"""The front door: grades your answers, shows pages, hints and quizzes. All of it is in drills/."""

import sys

from drills.cli import main

if __name__ == "__main__":
    sys.exit(main())
