"""Every offset that a solution's kernels compute has 64 bits, in the lesson's file and in the fast one beside it.

Graded tests ask that of heads, rows and slots; here every axis of every input is so long that it begins more than 2^31
elements before its end, one axis at a time: address space, not memory. In the interpreter, whose instruments would name
an access outside a tensor; in a process of its own, since Triton decides at import whether it interprets.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import importlib, sys
sys.path[:0] = [{root!r}, {root!r} + "/solutions"]
import torch
from drills import catalog, reserve
from drills.instruments import interpreter
from drills.judge.compare import compare
from drills.lessons.strides import far_apart

stem = sys.argv[1]
LESSON = catalog.find(stem.removesuffix("_fast")).lesson
LESSON = importlib.import_module("drills.lessons." + LESSON.stem).LESSON
module = importlib.import_module(stem)
interpreter.install()
rng = torch.Generator().manual_seed(7)


def normal(*shape):
    return torch.randn(*shape, generator=rng).half()


def single(*shape):
    return torch.randn(*shape, generator=rng)


def paged():
    cache = normal(4, 2, 3, 2, 3)
    ints = [torch.tensor(one, dtype=torch.int32) for one in ([0, 2, 4], [3, 0, 2, 1], [2, 3])]
    return cache, *ints


def tables(requests):
    every = torch.arange(requests + 1, dtype=torch.int32)
    return every, every[:-1].flip(0), torch.full((requests,), 2, dtype=torch.int32)


CALLS = {{
    "softmax_stats": lambda: (normal(3, 3),),
    "softmax": lambda: (normal(3, 3),),
    "attend": lambda: (normal(3, 3), normal(3, 3)),
    "partial_attention": lambda: (normal(3, 3), normal(3, 3, 3), normal(3, 3, 3), 2),
    "merge_pair": lambda: (single(3), single(3).exp(), normal(3, 3), single(3), single(3).exp(), normal(3, 3)),
    "merge_mlo": lambda: (single(3, 3), single(3, 3).exp(), normal(3, 3, 3)),
    "lse": lambda: (normal(3, 3),),
    "lse2": lambda: (normal(3, 3),),
    "merge_natural": lambda: (normal(3, 3, 3), single(3, 3), normal(3, 3, 3), single(3, 3)),
    "to_flashinfer": lambda: (single(3, 3),),
    "partial_states": lambda: (normal(3, 3, 3), normal(3, 3, 3), normal(3, 3, 3), 2),
    "merge_state": lambda: (normal(3, 3, 3), single(3, 3), normal(3, 3, 3), single(3, 3)),
    "merge_state_in_place": lambda: (
        normal(3, 3, 3), single(3, 3), normal(3, 3, 3), single(3, 3), torch.tensor([True, False, True])
    ),
    "merge_states": lambda: (normal(3, 3, 3, 3), single(3, 3, 3)),
    "variable_length_merge_states": lambda: (normal(4, 3, 3), single(4, 3), torch.tensor([0, 1, 4])),
    "attend_shared": lambda: (normal(3, 3, 3), normal(3, 3, 3), normal(3, 3, 3)),
    "attend_paged": lambda: (normal(2, 4, 3), *paged()),
    "cascade": lambda: (normal(2, 4, 3), normal(3, 2, 3), normal(3, 2, 3), *paged()),
    "attend_paged, a query head a KV head": lambda: (normal(40, 2, 3), normal(40, 2, 3, 2, 3), *tables(40)),
    "multi_level_cascade": lambda: (normal(2, 4, 3), paged()[0], [(torch.tensor([0, 1, 2]), *paged()[1:])]),
}}
tried = 0
for name, draw in CALLS.items():
    name = name.partition(",")[0]
    if not hasattr(module, name) or name not in [one.name for one in LESSON.exercises]:
        continue
    exercise = LESSON.exercise(name)
    inputs = draw()
    for at, x in enumerate(inputs):
        if not torch.is_tensor(x):
            continue
        for axis in range(x.dim()):
            if x.shape[axis] < 2:
                continue
            apart = (2**31 + 16) // (x.shape[axis] - 1)
            args = [one.clone() if torch.is_tensor(one) else one for one in inputs]
            args[at] = far_apart(x, apart, axis)
            expected = exercise.oracle(*args)
            results = getattr(module, name)(*args)
            results = args[:2] if results is None else results if isinstance(results, tuple) else (results,)
            for one in compare(exercise, tuple(inputs), tuple(results), expected):
                assert one.right, (name, "argument", at, "axis", axis, one.output.name)
            tried += 1
assert tried
print("all right", tried)
"""


@pytest.mark.parametrize("stem", sorted(path.stem for path in (ROOT / "solutions").glob("l*.py")))
def test_offsets_along_every_axis_have_64_bits(stem):
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", SCRIPT.format(root=str(ROOT)), stem]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr[-2000:]
