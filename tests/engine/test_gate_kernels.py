"""Kernels in the ways that learners write them compile for both targets; the figures are those of the compiled code."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_bench import PLAIN, C, Starter, launch, line_of

from drills.instruments.gate import CompileGate
from drills.instruments.gate_report import main_width, width_advice

FILE = Path(__file__).with_name("gate_accepted.py")
XY = {"x": "*fp16", "y": "*fp16", "n": "i32", "B": (C, 64)}
ROWS = {"x": "*fp16", "y": "*fp16", "rows": "i32", "D": "i32", "R": (C, 8), "B": (C, 128)}
FUNCTION = {"function": "squared", "line": line_of("squared", FILE), "closure": {}}
ADD_ONE = {"function": "add_one", "line": line_of("add_one", FILE), "closure": {}}

GOOD = {
    "calls a helper": launch("calls_a_helper", FILE, PLAIN),
    "reads a constant": launch("reads_a_constant", FILE, PLAIN),
    "is tuned": launch("is_tuned", FILE, {**PLAIN, "EVEN": (C, True)}, num_warps=2),
    "returns early": launch("returns_early", FILE, PLAIN),
    "takes a mask": launch("takes_a_mask_or_none", FILE, {**PLAIN, "mask": "*u1"}),
    "takes none": launch("takes_a_mask_or_none", FILE, {**PLAIN, "mask": (C, None)}),
    "takes tuples": launch(
        "takes_tuples",
        FILE,
        {"pair": ["*fp32", "*fp32"], "shape": ["i32", "constexpr"], "B": (C, 64)},
        "pair.0 pair.1",
        parts={"shape.1": 1},
    ),
    "takes named tuples": launch(
        "takes_named_tuples",
        FILE,
        {
            "x": "*fp32",
            "table": {
                "tuple": ["*fp32", {"tuple": ["i32", "constexpr"], "fields": ["row", "column"]}],
                "fields": ["data", "by"],
            },
            "fixed": (C, {"tuple": [3, 4], "fields": ["row", "column"]}),
            "B": (C, 64),
        },
        "x table.0 table.1.0",
        parts={"table.1.1": 1},
    ),
    "takes a dtype": launch("takes_a_dtype", FILE, {**PLAIN, "ACC": (C, {"dtype": "fp32"})}),
    "takes a function": launch("takes_a_function", FILE, {**PLAIN, "F": (C, FUNCTION)}),
    "takes scalars": launch("takes_scalars", FILE, {**PLAIN, "scale": "fp32", "on": "u1"}),
    "takes a folded one": launch("takes_scalars", FILE, {**PLAIN, "n": (C, 1), "scale": "fp32", "on": "u1"}),
    "takes a long": launch("takes_scalars", FILE, {**PLAIN, "n": "i64", "scale": "fp64", "on": "u1"}),
    "takes a descriptor": launch("takes_a_descriptor", FILE, {**PLAIN, "x": "tensordesc<fp32[16, 64]>"}),
    "has a default": launch("has_a_default", FILE, {"x": "*fp32", "n": "i32"}),
    "computes a size": launch("computes_a_size", FILE, PLAIN),
    "is in a class": launch("is_in_a_class", FILE, PLAIN),
    "is nested": launch(
        "is_nested", FILE, {"x": "*fp32", "n": "i32"}, closure={"size": {"constexpr": 64}, "add_one": ADD_ONE}
    ),
    "passes an option": launch("reads_a_constant", FILE, PLAIN, options={"maxnreg": 64}),
    "is squeezed": launch("copies_rows", FILE, {**ROWS, "R": (C, 16)}, "x", num_warps=1, options={"maxnreg": 32}),
    "multiplies exactly": launch("multiplies_exactly", FILE, {**XY, "x": "*fp32", "B": (C, 16)}),
    "multiplies halves": launch("multiplies", FILE, XY),
    "copies aligned rows": launch("copies_rows", FILE, ROWS, "x y rows D"),
    "copies crooked rows": launch("copies_rows", FILE, ROWS, "x y rows", num_warps=2),
}
BAD = {
    "captures an int": launch("captures_an_int", FILE, {"x": "*fp32", "n": "i32"}, closure={"width": 64}),
    "captures a set": launch("captures_an_int", FILE, {"x": "*fp32", "n": "i32"}, closure={"width": {"other": "set"}}),
    "keeps too much": launch("keeps_much", FILE, {**XY, "B": (C, 128)}, "x y n", num_warps=8, num_stages=7),
    "too many warps": launch("reads_a_constant", FILE, PLAIN, num_warps=64),
    "odd warps": launch("reads_a_constant", FILE, PLAIN, num_warps=3),
    "unknown option": launch("reads_a_constant", FILE, PLAIN, options={"BLOCK_SIZE": 64}),
    "no kernel": launch("made_in", FILE, {"width": "i32"}),
    "argument forgotten": launch("calls_a_helper", FILE, {"x": "*fp32", "B": (C, 64)}),
}


@pytest.fixture(scope="module")
def found():
    """Case → target → report; each case as an exercise of its own."""
    gate = CompileGate(Starter(), thorough=True)
    for name, note in {**GOOD, **BAD}.items():
        gate.submit(FILE, name, [note])
    reports = {name: {one.target: one for one in gate.reports(name, 60)} for name in {**GOOD, **BAD}}
    gate.close()
    return reports


@pytest.mark.parametrize("case", GOOD)
def test_compiles_for_both_targets(found, case):
    assert {target: (one.ok, one.error) for target, one in found[case].items()} == {
        "sm_80": (True, ""),
        "sm_90": (True, ""),
    }
    assert all(one.registers > 0 and one.depth == "machine code" for one in found[case].values())


@pytest.mark.parametrize(
    ("case", "words", "advice"),
    [
        ("captures an int", "Cannot access global variable width", "tl.constexpr(...)"),
        ("captures a set", "a kernel cannot use a Python object of type set", ""),
        ("keeps too much", "shared memory: the block needs", "smaller blocks"),
        ("too many warps", "threads: the block has 2048, the limit is 1024", "fewer warps"),
        ("odd warps", "num_warps must be a power of 2", "1, 2, 4, 8"),
        ("unknown option", "Keyword argument BLOCK_SIZE was specified but unrecognised", "does not declare"),
        ("no kernel", "made_in is not a @triton.jit kernel", ""),
        ("argument forgotten", "the launch says nothing of n", ""),
    ],
)
def test_does_not_compile(found, case, words, advice):
    report = found[case]["sm_80"]
    assert not report.ok
    assert words in report.error
    assert advice in report.advice


def test_shared_memory_is_held_against_each_target(found):
    assert found["keeps too much"]["sm_80"].kind == "compile_resources"
    assert "166912" in found["keeps too much"]["sm_80"].error
    assert found["keeps too much"]["sm_90"].ok
    assert 166912 < found["keeps too much"]["sm_90"].shared <= 232448


def test_aligned_rows_move_16_bytes_an_instruction(found):
    report = found["copies aligned rows"]["sm_90"]
    assert (report.load_width, report.store_width, report.loads, report.tile) == (16, 16, {16: 1}, 1024)


def test_crooked_rows_move_2_bytes_an_instruction(found):
    report = found["copies crooked rows"]["sm_90"]
    assert (report.load_width, report.store_width, report.tile, report.threads) == (2, 2, 1024, 64)


def test_tf32_is_no_failure_where_halves_are_multiplied(found):
    assert not found["multiplies halves"]["sm_90"].tf32
    assert not found["multiplies exactly"]["sm_90"].tf32


def test_spills_are_counted(found):
    assert found["is squeezed"]["sm_90"].spills > 0
    assert found["copies aligned rows"]["sm_90"].spills == 0


def test_narrow_loads_are_advised_against(found):
    crooked, aligned = ([found[f"copies {kind} rows"]["sm_90"]] for kind in ("crooked", "aligned"))
    assert main_width(aligned) == 16
    said = width_advice(crooked, main_width(aligned))
    assert said.startswith("loads 2 bytes wide, the solution's are 16: ")
    assert "aligned" in said
    assert width_advice(aligned, 16) == width_advice(crooked, 2) == width_advice([], 16) == ""
