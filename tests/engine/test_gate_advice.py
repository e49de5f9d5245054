"""Every refusal that the gate has a sentence for, raised by Triton itself: the right line and the right words."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from gate_bench import PLAIN, Starter, launch

from drills.instruments.gate import CompileGate
from drills.instruments.gate_advice import advise, said

FILE = Path(__file__).with_name("gate_refused.py")
TREE = ast.parse(FILE.read_text())
KERNELS = [
    node
    for node in TREE.body
    if isinstance(node, ast.FunctionDef) and node.decorator_list and not node.name.startswith("helper")
]


def expected(kernel: ast.FunctionDef) -> tuple[int, str]:
    """Line and words after "# here: " in a kernel, or in the helper that it calls."""
    lines = FILE.read_text().splitlines()
    called = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
    for node in [kernel, *(n for n in TREE.body if isinstance(n, ast.FunctionDef) and n.name in called)]:
        for number in range(node.lineno, node.end_lineno + 1):
            if "# here: " in lines[number - 1]:
                return number, lines[number - 1].split("# here: ")[1]
    raise AssertionError(f"{kernel.name} has no mark")


@pytest.fixture(scope="module")
def reports():
    gate = CompileGate(Starter(), lanes=1)
    gate.submit(FILE, "x", [launch(kernel.name, FILE, PLAIN) for kernel in KERNELS])
    found = gate.reports("x", 60)
    gate.close()
    return {report.kernel: report for report in found if not report.ok}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_refused_at_its_line_with_its_advice(reports, kernel):
    line, words = expected(kernel)
    report = reports[kernel.name]
    assert (report.line, report.source) == (line, FILE.read_text().splitlines()[line - 1].strip())
    assert words in report.advice
    assert report.error and "Error(" not in report.error and "0x" not in report.error


def test_advice_and_error_are_one_line_each(reports):
    for report in reports.values():
        assert "\n" not in report.advice + report.error
        assert len(report.advice) < 180


def test_an_unknown_error_gets_no_guess():
    assert advise("PassManager::run failed") == ""
    assert "need not be wrong" in advise("Failures have been detected while processing an MLIR pass pipeline")
    assert said("PassManager::run failed", "") == "PassManager::run failed"


def test_a_function_that_calls_itself_is_called_by_its_own_name():
    for mangled in ("halved__i32", "Class.halved__Pfp32_c1", "made.<locals>.halved__(4,)cconstexpr_1_"):
        assert said(f"KeyError('graded_by_the_gate.{mangled}')", "Call") == "halved calls itself"
    assert said("KeyError('halved__i32')", "Call") == "halved__i32"


def test_a_pointer_with_an_index_is_no_torch_function():
    forgot = "Did you forget to add @triton.jit ? (`_semantic` argument must be provided outside of JIT functions.)"
    assert "indexed by number" in advise(forgot, "Subscript")
    assert "math, numpy and torch" in advise(forgot, "Call")


def test_an_empty_error_is_named_by_its_syntax():
    assert said("AssertionError()", "Assign") == "Triton does not compile this assignment"


def test_a_function_that_is_not_inlined_and_gets_blocks():
    error = "failed to legalize unresolved materialization from () to ('tensor<1x1xf32>') that remained live"
    assert "return once, at its end" in advise(error)


def test_warps_and_warps_alone():
    assert "32" in advise("threads: the block has 2048, the limit is 1024")
    assert "1, 2, 4, 8, 16 or 32" in advise("num_warps must be a power of 2")
