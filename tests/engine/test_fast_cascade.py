"""The fast cascade gives what the oracle gives: nobody grades it, so that this test has to.

In the interpreter and, where there is a GPU, on it too: some of its kernels are for Hopper alone. Each in a process of
its own, since Triton decides at import whether it interprets.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/solutions"]
import torch
import l5_cascade_fast as fast
from drills.instruments import interpreter
from drills.judge.compare import compare
from drills.lessons.l5_cascade import LESSON
from drills.lessons.paging import random_levels, random_pages

rng = torch.Generator().manual_seed(7)
device = sys.argv[1]
if device == "cpu":
    interpreter.install()  # an older Triton's own, with a newer numpy, has no loops over sizes


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=rng).to(dtype)


def moved(x, to):
    if isinstance(x, (tuple, list)):
        return type(x)(moved(one, to) for one in x)
    return x.to(to) if torch.is_tensor(x) else x


def right(name, *args):
    exercise = LESSON.exercise(name)
    results = moved(getattr(fast, name)(*moved(args, device)), "cpu")
    for one in compare(exercise, args, results, exercise.oracle(*args)):
        assert one.right, (name, one.output.name, one.worst())


def cascade_args(lengths, prefix, heads, kv_heads, dim, dtype, page=4):
    pages = random_pages(lengths, page, kv_heads, dim, dtype, rng, before=2)
    shared = [normal(prefix, kv_heads, dim, dtype=dtype) for _ in range(2)]
    return normal(len(lengths), heads, dim, dtype=dtype), *shared, *pages


CASES = [
    ([5, 0, 9], 37, 4, 2, 16, torch.float32),  # a request with no page
    ([3], 300, 2, 1, 20, torch.float16),  # the prefix in parts, and a partial tile
    ([0, 0], 0, 7, 1, 1, torch.float32),  # nothing at all
    ([200], 16, 1, 1, 64, torch.float16),  # own pages in parts
    ([], 8, 2, 1, 16, torch.float32),
    ([2] * 20, 70, 4, 1, 16, torch.float16),  # more rows than one block of 64
    ([5, 0, 70] * 7, 9, 3, 3, 20, torch.float16),  # a query head a KV head, many of them
]
FOR_HOPPER = [  # what its copy engine takes, for one block of rows and for two
    ([3, 0, 17] * 7, 600, 8, 2, 64, torch.float16, 8),
    ([30, 1] * 40, 1100, 4, 2, 128, torch.bfloat16, 16),
    ([9] * 70, 9000, 2, 1, 128, torch.float16, 16),
    # and enough requests with keys of their own that those are fetched too
    ([130, 0, 17, 64] * 10, 100, 8, 4, 128, torch.float16, 16),
    ([700, 1300, 5] * 7, 300, 16, 4, 64, torch.bfloat16, 8),  # in parts
    ([90, 129] * 40, 3000, 16, 1, 64, torch.float16, 64),  # more than 8 queries a KV head
    ([257, 31] * 35, 40, 3, 3, 128, torch.float16, 32),  # one
    ([9, 0, 40] * 24, 2000, 4, 2, 64, torch.float16, 16),  # where those who fetch them merge: eight states
    ([40, 9, 100] * 34, 1000, 32, 8, 128, torch.bfloat16, 16),  # three, of more rows than a program takes at once
]
for case in CASES + (FOR_HOPPER if device == "cuda" else []):
    args = cascade_args(*case)
    right("cascade", *args, -0.3)  # the largest score is that of the smallest product
    right("cascade", *args, 0.0)
    right("cascade", *args)
    right("attend_shared", *args[:3])
    right("attend_paged", args[0], *args[3:])

LEVELS = [
    ([[0, 4], [0, 1, 2, 3, 4]], [[21], [1, 5, 0, 3]], 4),
    ([[1, 3], [0, 2, 2]], [[6], [5, 4]], 4),  # requests in no group, an empty group
    ([[3, 40]], [[70]], 40),  # rows before the first group, and a group of several blocks
    ([[0, 1, 1, 3], [1, 2]], [[7, 2, 30], [9]], 4),
    ([[0]], [[]], 3),  # a level with no group
    ([], [], 2),
]
LEVELS_FOR_HOPPER = [  # groups of many rows, of which some are in none; an empty group, and more than one tile of them
    ([[3, 30, 30, 90]], [[300, 9, 70]], 100),
    ([[0, 100], [0, 40, 41, 100], list(range(101))], [[900], [700, 0, 130], [9, 0, 30, 8] * 25], 100),
    ([list(range(0, 1501, 10))], [[17, 70, 8] * 50], 1500),
    ([[0, 100], list(range(101))], [[30], [90, 0, 300, 8] * 25], 100),  # fetched by request
    ([[0, 5] + [5 + i // 2 for i in range(130)]], [[140, 3] * 65 + [9]], 80),  # as many groups, but of two or none
    ([[0, 30], [0, 2] + list(range(2, 30)) + [29]], [[200], [900, 0, 700] * 10], 30),  # in parts; one is in none
]
for bounds, lengths, batch in LEVELS:
    right("multi_level_cascade", normal(batch, 2, 16), *random_levels(bounds, lengths, 4, 1, 16, torch.float32, rng))
for bounds, lengths, batch in LEVELS + LEVELS_FOR_HOPPER if device == "cuda" else []:
    for kv_heads in (1, 8):
        q = normal(batch, 8, 64, dtype=torch.float16)
        right("multi_level_cascade", q, *random_levels(bounds, lengths, 8, kv_heads, 64, torch.float16, rng))
q, k, v, _, *tables = moved(cascade_args([5, 0, 9], 37, 4, 2, 16, torch.float32), device)
pairs = []
for ahead in (None, tuple(tables)):  # what the next launch begins with changes nothing
    pairs.append(fast.workspace(q, 2))
    fast.launch_shared(q, k, v, 0.25, *pairs[-1], beside=False, fetched=0, tables=ahead)
assert all(torch.equal(*states) for states in zip(*pairs, strict=True))
if device == "cuda":  # programs of more than 128 items each would be too few
    real, fast.multiprocessors = fast.multiprocessors, lambda q: 1
    right("cascade", *cascade_args([7, 0, 70] * 90, 50, 8, 4, 64, torch.float16, 8))
    fast.multiprocessors = real
print("all right")
"""


HERE = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no GPU"))]


@pytest.mark.parametrize("device", HERE)
def test_the_fast_cascade_agrees_with_the_oracle(device):
    environment = {**os.environ, "TRITON_INTERPRET": "1" if device == "cpu" else "0"}
    script = SCRIPT.replace("{root!r}", repr(str(ROOT)))
    command = [sys.executable, "-c", script, device]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.strip() == "all right", run.stderr[-2000:]
