"""Python that runs while a kernel is compiled: what only computes is taken, anything else refused, at its line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gate_bench import PLAIN, ROOT, Starter, launch

from drills.instruments.gate import CompileGate

TEXT = Path(__file__).with_name("gate_at_compile_time.py").read_text(encoding="utf-8")
FUNCTIONS = re.findall(r"@triton\.constexpr_function\ndef (\w+)", TEXT)
MADE = ["forged", "nameless"]
WHOLE = [one for one in re.findall(r"\ndef (names_\w+)", TEXT)]
KERNEL = """

@triton.jit
def at_{0}(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, {0}(B)), 0.0)
"""
NAMES = """
import importlib.util, json, os, sys
os.environ["TRITON_INTERPRET"] = "1"
import triton
import triton.language
from drills.instruments.meant import Vocabulary
words = Vocabulary()
spec = importlib.util.spec_from_file_location("graded", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernels = {name: one for name, one in vars(module).items() if type(one).__name__ == "InterpretedFunction"}
print(json.dumps({name: words.names(one.fn, {}) for name, one in kernels.items()}))
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Of each kernel."""
    file = tmp_path_factory.mktemp("python") / "kernels.py"
    file.write_text(TEXT + "".join(KERNEL.format(one) for one in [*FUNCTIONS, *MADE]), encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-c", NAMES, str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    gate = CompileGate(Starter(), lanes=1)
    for kernel, names in json.loads(told.stdout).items():
        gate.submit(file, kernel, [launch(kernel, file, PLAIN, names=names)])
    found = {kernel: gate.reports(kernel, 60)[0] for kernel in json.loads(told.stdout)}
    gate.close()
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_for_constants_may_only_compute(reports, function):
    said = reports[f"at_{function}"]
    lines = TEXT.split(f"\ndef {function}(")[1].split("\n\n\n")[0].splitlines()
    refused = [(number, line.partition("# here: ")[2]) for number, line in enumerate(lines) if "# here: " in line]
    if not refused:
        assert said.ok, said.error
        return
    first = TEXT[: TEXT.index(f"\ndef {function}(")].count("\n") + 2
    assert (said.kind, said.line) == ("compile_error", first + refused[0][0]), said.error
    assert refused[0][1] in said.error and "may only compute" in said.error


@pytest.mark.parametrize("function", MADE)
def test_code_that_is_not_the_texts_is_refused(reports, function):
    said = reports[f"at_{function}"]
    assert said.kind == "compile_error", said


@pytest.mark.parametrize("kernel", WHOLE)
def test_what_else_is_python_in_a_kernel_is_refused(reports, kernel):
    said = reports[kernel]
    words = TEXT.split(f"\ndef {kernel}(")[1].partition("\n\n\n")[0].partition("# refused: ")[2].strip()
    assert said.ok == (not words), said.error
    assert words in said.error
