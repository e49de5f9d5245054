"""The repaired interpreter gives what compiled code gives; the plain one of Triton 3.7.1 is shown not to."""

import importlib.metadata
import json
import math
import os
import subprocess
import sys

import pytest
from case_runner import HERE, run

KNOWN = "3.7.1"
"""The version whose faults are known one by one."""

NAN = float("nan")
CRASHES, WRONG, SAME = "crashes", "wrong", "same"

RIGHT = {
    "block_mask_and_scalar_comparison": (CRASHES, [1.0, 2.0, 3.0, 0.0]),
    "cast_of_a_loop_variable": (CRASHES, [6.0]),
    "run_time_bool": (CRASHES, [1.0, 2.0]),
    "bfloat16_atomic_add": (CRASHES, [4.0, 8.5]),
    "int64_annotation": (WRONG, [1 << 40]),
    "loop_over_64_bit_bounds": (WRONG, [3 << 30]),
    "float32_to_bfloat16_rounds_to_even": (WRONG, [1.0, 1 + 2**-6, 1 + 2**-7, -1 - 2**-6]),
    "int32_to_bfloat16": (WRONG, [3.0, -5.0]),
    "float64_to_bfloat16": (WRONG, [1.5, -2.0]),
    "float_to_int_saturates": (WRONG, [2**31 - 1, -(2**31), 0, -1]),
    "bfloat16_arithmetic": (
        WRONG,
        [1.0, 4.5, -2.0, 4.5, -3.0, 1.5, 2.0, 3.0, -1.0, 1.5, 1.0, -3.0, 1.0, 3.0, -0.5, 2.0, 0.0, 6.0],
    ),
    "bfloat16_constants": (CRASHES, [2.5, 6.5]),
    "bfloat16_dot": (WRONG, [72.0, 4.5]),
    "float16_sum_overflows": (WRONG, [NAN]),
    "float16_sum_rounds": (WRONG, [2048.0]),
    "bfloat16_sum_rounds": (WRONG, [256.0]),
    "logic_on_blocks": (WRONG, [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]),
    "nan_operands_are_dropped": (WRONG, [2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 1.0, 3.0, 4.0, 2.0]),
    "float_arguments_are_float32": (CRASHES, [1.0, 0.0]),
    "python_max_and_min_on_blocks": (WRONG, [1, 2, 4, 5]),
    "names_imported_from_triton": (CRASHES, [1.5, 2.5]),
    "kernel_in_a_function": (CRASHES, [4.0]),
    "reduce_as_a_method": (SAME, [2.0, 5.0, 3.0, 4.0, 6.0, 1.0]),
    "autotuned_kernel": (CRASHES, [0.0, 1.0, 2.0, 3.0, 4.0]),
    "kernel_with_heuristics": (SAME, [1.0, 1.0, 1.0]),
    "inverted_unsigned": (CRASHES, [254]),
    "numpy_is_not_put_into_the_module": (WRONG, "NameError"),
    "errors_stand_on_their_own_line": (CRASHES, True),
    "errors_keep_their_type": (WRONG, "ValueError"),
    "launch_options_are_checked": (WRONG, "'Keyword argument num_warp was specified but unrecognised'"),
    "grid_is_checked": (CRASHES, "grid[0] is 2.5"),
    "bfloat16_block_pointer_padding": (CRASHES, [1.0, 2.0, 3.0, 9.0]),
    "scans": (SAME, [1.0, 3.0, 6.0, 10.0, 10.0, 9.0, 7.0, 4.0, 1.0, 2.0, 3.0, 4.0]),
    "dot_precisions_of_the_gpu": (CRASHES, [16.0]),
    "argmax_and_argmin": (SAME, [1, 2, 1]),
    "math_as_methods": (CRASHES, [7.0, 26.5]),
    "libdevice_functions": (CRASHES, [3.0, 17.0]),
    "assembly_is_announced": (
        WRONG,
        "tl.inline_asm_elementwise runs on a GPU only: this grader runs kernels in an interpreter and cannot judge it",
    ),
    "atomic_max_and_min_of_floats": (SAME, [1.0, -1.5]),
    "tuples_of_pointers": (SAME, [3.0, 4.0]),
    "types_are_those_of_the_jit": (SAME, []),
    "scalar_logic": (SAME, [6.0, 11.0]),
    "sums_along_each_axis": (SAME, [4.0, 7.0, 2.0, 5.0, 3.0, 8.0, 11.0]),
    "a_scalar_function_of_every_element": (
        CRASHES,
        [1.0, 0.5, 0.0, 0.0, 1.0, 2.0, -2.0, 2.0, 2.0, 1.0, 0.0, -3.0],
    ),
    "atomics_of_a_descriptor": (CRASHES, [[1.5, 1.5, 3.0, 0.0], [1, 0x50000000, 0xA0000000, 0xF0000000]]),
    "a_scaled_product_is_announced": (
        WRONG,
        "tl.dot_scaled runs on a GPU only: this grader runs kernels in an interpreter and cannot judge it",
    ),
    "powers_too_small_to_be_normal": (WRONG, [0.0, 2.0**-126, 0.0, NAN]),
    "a_shift_past_the_width": (
        WRONG,
        [3 << 26, 3 << 27, 3 << 28, 3 << 29, "a shift of 32 bits by 32: undefined, it must be below 32"],
    ),
    "a_class_of_values_is_announced": (
        WRONG,
        "Sum, a class of values (tl.core._aggregate), runs on a GPU only: this grader runs kernels in an interpreter "
        "and cannot judge it",
    ),
}
"""Case → (what the plain interpreter does, what compiled code gives)."""


@pytest.fixture(scope="module")
def repaired():
    return run("interpreter_cases", "ours")


@pytest.fixture(scope="module")
def plain():
    if importlib.metadata.version("triton") != KNOWN:
        pytest.skip(f"the faults of Triton {KNOWN} are listed, not those of other versions")
    return run("interpreter_cases", "plain")


def same(got, right):
    """Equal, with NaN equal to itself."""
    if isinstance(right, list) and isinstance(got, list) and len(got) == len(right):
        return all(same(one, other) for one, other in zip(got, right, strict=True))
    if isinstance(right, float) and math.isnan(right):
        return isinstance(got, float) and math.isnan(got)
    return got == right


@pytest.mark.parametrize("name", RIGHT)
def test_the_repaired_interpreter_gives_what_compiled_code_gives(repaired, name):
    outcome = repaired[name]
    assert same(outcome.get("got", outcome), RIGHT[name][1]), json.dumps(outcome)


@pytest.mark.parametrize("name", RIGHT)
def test_the_plain_interpreter_has_the_fault_that_is_repaired(plain, name):
    fault, right = RIGHT[name]
    outcome = plain[name]
    seen = CRASHES if "raised" in outcome else SAME if same(outcome["got"], right) else WRONG
    assert seen == fault, json.dumps(outcome)


UNKNOWN = """
import triton
triton.__version__ = "9.1.0"
from drills import instruments
from triton.runtime import interpreter
before = interpreter.InterpretedFunction.run
status = instruments.install()
assert interpreter.InterpretedFunction.run is before
import torch
from interpreter_cases import scans
from drills.instruments.notes import CallOptions
with instruments.recording(CallOptions(), {}) as record:
    results = scans()
print(status.on, status.note, record.notes(torch.tensor(results)).findings)
"""


def test_an_unknown_version_is_left_alone_and_named():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parents[1]}"}
    done = subprocess.run([sys.executable, "-c", UNKNOWN], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False triton 9.1.0 is not known: plain interpreter, no recorder []", done.stderr


def test_every_case_is_listed(repaired):
    assert set(repaired) == set(RIGHT)
