"""What the names of a kernel are told as, in a process of its own: with Triton imported, this one could fork none."""

import subprocess
import sys

from drills.catalog import ROOT

TOLD = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import types
import torch
import triton
import triton.language as tl
from triton.language import load as store, exp2
from drills.instruments.intact import Intact
from drills.instruments.meant import Vocabulary

words, intact = Vocabulary(), Intact()
SIZE = tl.constexpr(4)
WORD = tl.constexpr(tl.max)
LONG = "x" * 100
KINDS = (tl.float16, torch.float32, 2.0)
lib = types.ModuleType("lib")
lib.load = tl.load

class InterpretedFunction:
    fn = store

@triton.jit
def helper(x, step: tl.constexpr = 7, *, size=SIZE):
    return x + SIZE

def outer(width):
    @triton.jit
    def kernel(x):
        y = helper(tl.math.exp2(x)) + exp2(x) * width + lib.load(x) + InterpretedFunction(x) + tl.made_up(x)
        return y and store(x) + KINDS[2] + WORD(x) + LONG + twin(x)
    return kernel

@triton.jit
def kernel(x):
    return SIZE

twin = kernel

told = words.names(outer(3).fn, {"f": helper})
line = helper.fn.__code__.co_firstlineno
assert told == {
    "f of kernel": f"helper, line {line}", "helper in kernel": f"helper, line {line}", "SIZE in helper": "4",
    "step by default in helper": "7",
    "size by default in helper": "4",
    "width in kernel": "3", "lib in kernel": "module lib", "InterpretedFunction in kernel": "a Python type",
    "tl.made_up in kernel": "None", "store in kernel": "Triton's load", "WORD in kernel": "Triton's max",
    "LONG in kernel": told["LONG in kernel"], "SIZE in kernel 2": "4",
    "twin in kernel": f"kernel, line {twin.fn.__code__.co_firstlineno}", "KINDS in kernel": told["KINDS in kernel"],
}, told
assert "2.0" in told["KINDS in kernel"] and "torch.float32" in told["KINDS in kernel"]
assert LONG not in told["LONG in kernel"] and told["LONG in kernel"].startswith("'xxx")
assert intact.changed() == ""
kept, tl.sum.fn = tl.sum.fn, helper.fn
assert intact.changed().endswith(".sum"), intact.changed()
tl.sum.fn = kept
tl.made_up = helper
assert intact.changed() == "triton.language.made_up"
print("told")
"""


def test_a_kernels_names_are_told_by_what_they_are_and_triton_has_no_new_ones(tmp_path):
    script = tmp_path / "told.py"
    script.write_text(TOLD)
    done = subprocess.run(
        [sys.executable, str(script)], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "told\n", done.stderr
