"""softmax's kernels for long rows: the exercises' own tests are too small to reach them.

Runs in a process of its own, since Triton decides at import whether it interprets.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/solutions"]
import torch
from drills.instruments import interpreter
interpreter.install()  # an older Triton's own, with a newer numpy, has no loops over sizes
import l1_online_softmax as l1
from drills.judge.compare import compare
from drills.lessons.l1_online_softmax import LESSON

exercise = LESSON.exercise("softmax")
for M, N, dtype in [
    (3, 3000, torch.float16),  # read once
    (6, 32768, torch.float16),  # the longest that is read once, more rows than programs
    (3, 16384, torch.float32),  # as long in bytes
    (2, 33000, torch.bfloat16),  # too long: two reads
]:
    x = torch.randn(M, N, generator=torch.Generator().manual_seed(1)).to(dtype)
    x[0] = float("-inf")
    x[1, : N // 2] = float("-inf")
    for one in compare(exercise, (x,), (l1.softmax(x),), exercise.oracle(x)):
        assert one.right, (N, one.output.name, one.worst())
print("all right")
"""


def test_long_rows_agree_with_the_oracle():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    script = SCRIPT.replace("{root!r}", repr(str(ROOT)))
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.strip() == "all right", run.stderr[-2000:]
