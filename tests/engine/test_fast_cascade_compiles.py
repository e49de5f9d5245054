"""The fast cascade's kernels for Hopper compile, here where no GPU is: the interpreter runs none of them.

What the launches of some calls would run is compiled for that GPU, and its machine code looked at. In a process of its
own, since Triton decides at import whether it interprets.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from types import SimpleNamespace
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction
from drills.lessons.cascade_bench import make_cascade, make_levels
from solutions import l5_cascade_fast as fast
from solutions.fast_cascade import sizes

compiled = {}


def compile_only(kernel, grid):
    def launch(*args, **options):
        binary = kernel.run(*args, grid=grid, warmup=True, **options)
        compiled.setdefault(kernel.fn.__name__, {})[binary.hash] = binary.asm["sass"]
    return launch


class OnGpu(torch.Tensor):
    is_cuda = True


def queries_on_gpu(q, *others):
    return q.as_subclass(OnGpu), *others


JITFunction.__getitem__ = compile_only
driver.set_active(SimpleNamespace(
    get_current_target=lambda: GPUTarget("cuda", 90, 32), get_current_device=lambda: 0, get_current_stream=lambda _: 0,
))
sizes.gpu = lambda device: SimpleNamespace(major=9, multi_processor_count=132)
some = {"rng": torch.Generator(), "device": "cpu", "kv_heads": 8}
for requests, prefix, dtype in (64, 8192, torch.float16), (256, 16384, torch.bfloat16):
    args = make_cascade(dtype=dtype, requests=requests, prefix=prefix, own=16, **some)
    fast.cascade(*queries_on_gpu(*args))
args = make_levels(dtype=torch.float16, requests=64, lengths=(1024, 16), groups=(1, 64), **some)
fast.multi_level_cascade(*queries_on_gpu(*args))

assert len(compiled["attend_bulk_kernel"]) == 3 and len(compiled["attend_own_kernel"]) == 3, compiled.keys()
for name, binaries in compiled.items():
    for sass in binaries.values():  # Triton 3.6 puts off six values of attend_own_kernel with 48 registers
        assert sass.count("STL") <= 6, name + " spills"
for sass in compiled["attend_bulk_kernel"].values():
    beside = sass.split("WARPGROUP.DEPBAR.LE gsb0, 0x1")[1:]  # what comes after the wait for scores, a group of warps
    assert len(beside) == 2
    for code in beside:
        taken = code.split("WARPGROUP.DEPBAR.LE gsb0, 0x0")[0].count("MUFU.EX2")
        assert taken >= 32, f"only {taken} exponentials are taken beside a product"
print("all right")
"""


def test_the_kernels_for_hopper_compile_keep_to_registers_and_take_exponentials_beside_products():
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    command = [sys.executable, "-c", SCRIPT.replace("{root!r}", repr(str(ROOT)))]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.strip() == "all right", run.stderr[-2000:]
