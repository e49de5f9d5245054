"""The fast softmax gives what the oracle gives, and is as good as the lesson's for whoever grades it.

Rows are kept on Hopper GPUs alone, so that where there is one this runs there too, in a process of its own: Triton
decides at import whether it interprets. Rows as long as the kernel asks for are tried few at a time.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from drills import catalog

LESSON = catalog.find("l1").lesson
pytestmark = pytest.mark.skipif(not LESSON.fast.is_file(), reason=catalog.NOT_HERE)

SCRIPT = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/solutions"]
import torch
import l1_online_softmax_fast as fast
from drills.instruments import interpreter
from drills.judge.compare import compare
from drills.lessons.l1_online_softmax import LESSON

device = sys.argv[1]
if device == "cpu":
    interpreter.install()  # an older Triton's own, with a newer numpy, has no loops over sizes
exercise = LESSON.exercise("softmax")
rng = torch.Generator().manual_seed(1)


def right(x, kept, view=lambda x: x):
    x = view(x.to(device))
    assert fast.keeps_rows(x) == kept, x.shape
    (one,) = compare(exercise, (x.cpu(),), (fast.softmax(x).cpu(),), exercise.oracle(x.cpu()))
    assert one.right, (x.shape, x.dtype, one.worst())


def scores(M, N, dtype=torch.float16, scale=1.0):
    x = (scale * torch.randn(M, N, generator=rng)).to(dtype)
    x[0] = float("-inf")
    x[1, : N // 2] = float("-inf")
    return x


right(scores(3, 3000), False)
right(scores(2, 33000, torch.bfloat16), False)
right(scores(2, 20000, torch.float32), False)
assert fast.softmax(torch.empty(0, 9, device=device)).shape == (0, 9)
assert fast.softmax(torch.empty(9, 0, device=device)).shape == (9, 0)
if device == "cuda" and torch.cuda.get_device_capability()[0] == 9:
    right(scores(64, 327688), True)  # L2 has not room for it
    right(scores(4, 131072), False)
    fast.FEWEST, fast.IN_CACHE = 1, 0
    C = fast.CHUNK
    right(scores(3, 15 * C), True)  # all of it is kept
    right(scores(3, 14 * C + 8, torch.bfloat16), True)  # a last chunk of 8 columns
    right(scores(3, 26 * C), True)  # just all of it
    right(scores(3, 26 * C + 8, scale=20.0), True)  # a chunk is fetched again
    right(scores(3, 32 * C, torch.bfloat16, scale=20.0), True)
    right(scores(2, 40 * C, scale=9000.0), True)  # every slot is filled again
    right(scores(2, 73 * C - 24), True)  # and again
    right(scores(3, 20 * C), True, lambda x: x[:, 8:])  # rows that lie apart
    right(scores(3, 20 * C), False, lambda x: x[:, 4:-4])  # rows that begin in the midst of 16 bytes
    right(scores(3, 20 * C), False, lambda x: x[:, 8:-4])
    right(scores(20 * C, 3), False, lambda x: x.T)
print("all right")
"""

HERE = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no GPU"))]


@pytest.mark.parametrize("device", HERE)
def test_the_fast_softmax_agrees_with_the_oracle(device):
    environment = {**os.environ, "TRITON_INTERPRET": "1" if device == "cpu" else "0"}
    command = [sys.executable, "-c", SCRIPT.replace("{root!r}", repr(str(catalog.ROOT))), device]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.strip() == "all right", run.stderr[-2000:]


def test_it_passes_what_a_learner_has_to_pass(tmp_path):
    assert LESSON.fast_exercises == ("softmax",)
    shutil.copy(LESSON.fast, tmp_path / LESSON.solution.name)
    command = [sys.executable, "grade.py", "l1.softmax", "--target", str(tmp_path), "--device", "cpu", "--plain"]
    run = subprocess.run(
        [*command, "--json", str(tmp_path / "result.json")],
        cwd=catalog.ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    (lesson,) = json.loads((tmp_path / "result.json").read_text())["lessons"]
    (softmax,) = (one for one in lesson["exercises"] if one["name"] == "softmax")
    assert all(level["state"] == "passed" for level in softmax["levels"].values()), softmax["levels"]
