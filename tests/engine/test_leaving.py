"""`grade.py` ends at once, and yet nothing that was printed or registered for the end is lost."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ENDS = """
import atexit, sys
from drills.leaving import leave

class Torn:
    def __del__(self):
        print("taken apart")

torn = Torn()
atexit.register(print, "registered")
sys.stdout.write("no end of line, ")
leave(3)
"""


def ended(text, **redirected):
    command = [sys.executable, "-c", text]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(command, cwd=ROOT, env=env, text=True, check=False, stderr=subprocess.PIPE, **redirected)


def test_what_was_printed_is_written_and_nothing_is_taken_apart():
    done = ended(ENDS, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (3, "no end of line, registered\n", "")


def test_an_output_that_takes_no_more_is_no_trouble():
    with open("/dev/full", "w") as full:
        done = ended(ENDS.replace("atexit.register(", "("), stdout=full)
    assert (done.returncode, done.stderr) == (3, "")
