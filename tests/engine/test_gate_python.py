"""Python that a kernel lacks: Triton refuses each function and statement that has a sentence, and it is given."""

from __future__ import annotations

import pytest
from gate_bench import PLAIN, Starter, launch

from drills.instruments import gate_phrases
from drills.instruments.gate import CompileGate

HEAD = "import triton\nimport triton.language as tl\n"

KERNEL = """

@triton.jit
def kernel_{number}(x, n, B: tl.constexpr):
    v = tl.load(x)
    {statement}
    tl.store(x, v)
"""

CALLS = {
    "sum": "v = sum((v, v))",
    "breakpoint": "breakpoint()",
    "abs": "v = abs(v)",
    "round": "v = round(v)",
    "pow": "v = pow(v, 2)",
    "bool": "v = tl.where(bool(v > 0), v, 0.0)",
    "any": "v = tl.where(any(v > 0), v, 0.0)",
    "all": "v = tl.where(all(v > 0), v, 0.0)",
    "zip": "for a, b in zip(range(2), range(2)): v += a",
    "enumerate": "for a, b in enumerate(range(2)): v += a",
    "reversed": "for a in reversed(range(2)): v += a",
    "sorted": "v = sorted(v)",
    "map": "v = map(tl.exp, v)",
    "tuple": "v = tuple((v, v))",
    "dict": "w = dict(a=1)",
    "set": "w = set((1, 2))",
    "str": "w = str(n)",
}

STATEMENTS = {
    "Break": "while n > 0: break",
    "Continue": "for i in range(n): continue",
    "Subscript": "w = v[0]",
    "Lambda": "f = lambda a: a",
    "Dict": "w = {'a': v}",
    "DictComp": "w = {a: v for a in range(2)}",
    "SetComp": "w = {a for a in range(2)}",
    "GeneratorExp": "w = (a for a in range(2))",
    "ListComp": "w = [a for a in range(4)]",
    "Try": "try: v = v + 1\n    except ValueError: v = v - 1",
    "Raise": "raise ValueError('no')",
    "NamedExpr": "v = (w := v) + w",
    "FunctionDef": "def inner(a): return a",
    "Global": "global G",
    "With": "with v: v = v + 1",
    "Import": "import math",
    "ImportFrom": "from math import exp",
    "Set": "w = {v, 1}",
    "Delete": "del v",
}


@pytest.fixture(scope="module")
def advice(tmp_path_factory):
    """What the gate says of each statement."""
    statements = [*CALLS.values(), *STATEMENTS.values()]
    file = tmp_path_factory.mktemp("python") / "kernels.py"
    kernels = [KERNEL.format(number=number, statement=one) for number, one in enumerate(statements)]
    file.write_text(HEAD + "".join(kernels), encoding="utf-8")
    gate = CompileGate(Starter(), lanes=1)
    gate.submit(file, "x", [launch(f"kernel_{number}", file, PLAIN) for number in range(len(statements))])
    found = {report.kernel: report for report in gate.reports("x", 60)}
    gate.close()
    return {one: found[f"kernel_{number}"] for number, one in enumerate(statements)}


def test_each_sentence_has_a_statement():
    assert set(CALLS) == set(gate_phrases.PYTHON_ONLY)
    assert set(STATEMENTS) == set(gate_phrases.NODES)


@pytest.mark.parametrize("name", CALLS)
def test_a_python_function_is_refused_with_what_to_write_instead(advice, name):
    report = advice[CALLS[name]]
    assert not report.ok
    assert gate_phrases.PYTHON_ONLY[name] in report.advice, (report.error, report.advice)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_python_statement_is_refused_with_its_sentence(advice, name):
    report = advice[STATEMENTS[name]]
    assert not report.ok
    assert report.advice == gate_phrases.NODES[name], (report.error, report.advice)
