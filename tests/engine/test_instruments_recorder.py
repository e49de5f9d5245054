"""What the recorder says of faulty functions, word by word, and that it says nothing of right ones."""

import inspect
import math
import re
from pathlib import Path

import pytest
from case_runner import HERE, run

from drills.instruments.notes import Traffic

SOURCE = Path(HERE / "recorder_cases.py").read_text().splitlines()

PICKS = "picks values by index outside a kernel, which can load and store them at these places itself"
FOUND = {
    "a_row_read_past_its_end": [
        (
            "out_of_bounds",
            "tl.load of v_a[40, 80] at element 3200, one past the last (3199), in program (39, 0, 0)",
        )
    ],
    "a_store_past_the_end": [
        ("out_of_bounds", "tl.store to o_ptr[3] at element 3, one past the last (2), in program (0, 0, 0)")
    ],
    "a_read_before_the_start": [
        ("out_of_bounds", "tl.load of x[4] at element -2, 2 before the first (0), in program (0, 0, 0)")
    ],
    "a_read_of_a_gap": [
        (
            "out_of_bounds",
            "tl.load of x[4, 3] (strides 8, 1) at offset 3, between its rows, where it has no element, "
            "in program (0, 0, 0)",
        )
    ],
    "a_read_of_a_gap_of_a_tensor_passed_twice": [
        (
            "out_of_bounds",
            "tl.load of x[4] (strides 2) at offset 1, between its rows, where it has no element, in program (0, 0, 0)",
        )
    ],
    "a_caught_fault_is_found": [
        ("out_of_bounds", "tl.load of x[4] at element 100, 97 past the last (3), in program (0, 0, 0)")
    ],
    "an_empty_tensor_is_read": [
        ("out_of_bounds", "tl.load of x[0] at element 0, but it has no element, in program (0, 0, 0)")
    ],
    "an_atomic_past_the_end": [
        (
            "out_of_bounds",
            "an atomic operation on o_ptr[3] at element 3, one past the last (2), in program (0, 0, 0)",
        )
    ],
    "a_block_pointer_unchecked": [
        ("out_of_bounds", "tl.load of x[3] at element 3, one past the last (2), in program (0, 0, 0)")
    ],
    "an_offset_past_2_to_the_31_in_32_bits": [
        (
            "out_of_bounds",
            "tl.load of x[3, 1] (strides 1073741840, 1) at offset -2147483616, 2147483616 before the first (0), "
            "in program (2, 0, 0)",
        )
    ],
    "a_fault_in_a_device_function": [
        ("out_of_bounds", "tl.load of x[4] at element 9, 6 past the last (3), in program (0, 0, 0)")
    ],
    "a_list_with_something_in_it_needs_a_launch": [
        ("not_triton", "result 0[3] was written by no launched kernel; none was launched for levels[0][0][1]")
    ],
    "each_block_of_columns_stores_s": [
        ("race", "programs (0, 0, 0) and (0, 1, 0) both store element [0] of result 1[3]")
    ],
    "a_program_reads_its_neighbors_result": [
        (
            "read_race",
            "program (0, 0, 0) loads element [1] of result 0[4], which program (1, 0, 0) stores in the same launch",
        )
    ],
    "a_program_reads_the_result_before_it": [
        (
            "read_race",
            "program (0, 0, 0) loads element [3] of result 0[4], which program (3, 0, 0) stores in the same launch",
        )
    ],
    "two_lanes_store_different_values": [
        ("race", "two lanes of one store in program (0, 0, 0) give different values to element [0] of result 0[2]")
    ],
    "the_last_program_adds_up_after_a_relaxed_atomic": [("read_race", None)],
    "programs_add_without_atomics_after_an_atomic": [("race", None), ("read_race", None)],
    "a_tail_is_never_written": [
        ("unwritten", "result 0[2, 6]: 4 of 12 elements are never written, the first at [0, 4]")
    ],
    "a_cast_of_what_was_never_written": [
        ("unwritten", "result 0[6, 2]: 4 of 12 elements are never written, the first at [2, 1]")
    ],
    "a_launch_is_noted": [("unwritten", "result 0[5]: 1 of 5 elements is never written, the first at [4]")],
    "a_result_without_a_kernel": [("not_triton", "result 0[3] was written by no launched kernel")],
    "nothing_is_launched": [("unwritten", "result 0[3]: 3 of 3 elements are never written, the first at [0]")],
    "an_input_of_size_0_and_a_result_that_is_not_filled": [
        ("unwritten", "result 0[2]: 2 of 2 elements are never written, the first at [0]")
    ],
    "a_kernel_that_stores_nothing": [("unwritten", "result 0[2]: 2 of 2 elements are never written, the first at [0]")],
    "a_loop_that_an_input_of_size_0_does_not_enter": [
        ("unwritten", "result 0[2]: 2 of 2 elements are never written, the first at [0]")
    ],
    "a_size_of_1_without_a_kernel": [
        ("not_triton", "result 0[1, 3] was written by no launched kernel; none was launched for v[1, 3]")
    ],
    "a_copy_of_an_input": [("not_triton", "result 0[3] was written by no launched kernel")],
    "results_from_numpy": [("not_triton", ".numpy() reads values out of a tensor")],
    "part_of_a_result_from_numpy": [
        ("not_triton", "result 0[3]: 2 of 3 elements were computed outside the launched kernels")
    ],
    "results_that_are_inputs_or_each_other": [
        ("shares_memory", "result 1 is memory of result 0: a later write to one changes the other"),
        ("shares_memory", "result 2 is memory of x: a later write to one changes the other"),
    ],
    "an_input_handed_back": [("shares_memory", "result 0 is memory of x, and no kernel was launched")],
    "torch_computes": [
        ("not_triton", "torch.sub computes with values outside a kernel"),
        ("not_triton", "torch.exp computes with values outside a kernel"),
        ("not_triton", "torch.matmul computes with values outside a kernel"),
        ("not_triton", "torch.max computes with values outside a kernel"),
        ("not_triton", "torch.gt computes with values outside a kernel"),
        ("not_triton", ".item() reads values out of a tensor"),
        ("not_triton", "torch.mul computes with values outside a kernel"),
    ],
    "torch_picks_by_index": [
        ("not_triton", f"x[indices] {PICKS}"),
        ("not_triton", f"torch.index_select {PICKS}"),
        ("not_triton", f"x[indices] = ... {PICKS}"),
    ],
    "values_are_read_out": [
        ("not_triton", ".tolist() reads values out of a tensor"),
        ("not_triton", ".numpy() reads values out of a tensor"),
        ("not_triton", ".__array__() reads values out of a tensor"),
        ("not_triton", ".__dlpack__() reads values out of a tensor"),
        ("not_triton", "ctypes reads values out of a tensor"),
    ],
    "values_are_disguised_as_integers": [
        ("not_triton", "torch.add computes with values outside a kernel"),
        ("not_triton", ".tolist() reads values out of a tensor"),
        ("not_triton", "torch.mul computes with values outside a kernel"),
    ],
    "torch_writes_in_place": [
        ("not_triton", "torch.mul computes with values outside a kernel"),
        ("not_triton", ".copy_() puts values into x that no kernel computed"),
    ],
    "an_input_is_changed": [("input_changed", "x was changed in 2 of 4 elements, the first at [0]")],
    "a_pointer_of_one_tensor_into_another": [("out_of_bounds", None)],
    "a_pointer_from_a_table_past_the_end": [
        ("out_of_bounds", "tl.load of an address in no tensor, in program (0, 0, 0)")
    ],
}
"""Case → its findings, in order. Every other case is right and must have none."""

STRIDED = "It is not contiguous: multiply each index by its stride, or use .contiguous() in the wrapper."

LIKELY = {
    "nothing_is_launched": "No kernel was launched: the function does that, with a grid, kernel[(programs,)](...).",
    "a_kernel_that_stores_nothing": "No program stored anything there: is there a tl.store to it, after the loop, and "
    "is its mask ever true?",
    "a_loop_that_an_input_of_size_0_does_not_enter": "No program stored anything there: with an input of size 0 a loop "
    "over it never runs. Store after the loop, or fill the result: torch.full.",
    "an_input_of_size_0_and_a_result_that_is_not_filled": "No kernel was launched. An input of size 0 needs none, but "
    "then the result must be filled: torch.full.",
    "a_row_read_past_its_end": "The block is BLOCK_D = 128 wide but a row has D = 80: "
    "mask the lanes past the row's end.",
    "an_offset_past_2_to_the_31_in_32_bits": "The offset wrapped at 2^31: cast the index before it is "
    "multiplied, as in row.to(tl.int64) * stride.",
    "a_size_of_1_without_a_kernel": "Results must come from launched @triton.jit kernels. Around them torch may "
    "allocate, fill, view, copy and cast, and compute with index tensors; only an input of size 0 needs no launch. "
    "A size of 1 needs one.",
    "an_input_handed_back": "Allocate a tensor with torch.empty_like, and launch a @triton.jit kernel that writes it.",
    "a_read_of_a_gap": STRIDED,
    "a_read_of_a_gap_of_a_tensor_passed_twice": "x.stride(0) is 2, but here 1 is taken for it, as if x were "
    "contiguous: multiply by its strides, or call .contiguous() in the wrapper.",
    "a_pointer_of_one_tensor_into_another": "The offset leads from a into b: check which pointer it is added to.",
}

RESULTS = {
    "a_right_copy": [[float(i) for i in range(12)]],
    "an_offset_past_2_to_the_31_in_64_bits": [[1.0, 2.0, 3.0]],
    "two_views_of_one_cache": [[2.0]],
    "pointers_from_a_table": [[2.0, 4.0]],
    "a_tensor_descriptor": [[[1.0] * 8] * 3],
    "programs_add_with_atomics": [[4.0]],
    "a_masked_lane_is_used_with_zeros": [[3.0]],
    "a_masked_lane_is_used_with_minus_inf": [[-math.inf]],
    "a_masked_lane_is_used_with_minus_inf_in_bfloat16": [[-math.inf]],
    "other_of_0_in_one_lane": [[0.0]],
    "fresh_memory_is_read_with_zeros": [[0.0]],
    "programs_in_order": [[0, 1, 2, 3, 4, 5, 6, 7]],
    "a_caught_fault_is_found": [[1.0] * 4],
}

IN_A_KERNEL = ("out_of_bounds", "race", "read_race")
POISON = ("a_masked_lane_is_used", "fresh_memory_is_read")
GARBAGE = ("a_masked_integer_lane_is_used", "fresh_integers_are_read")


@pytest.fixture(scope="module")
def cases():
    outcomes = run("recorder_cases", "ours")
    assert not [name for name, outcome in outcomes.items() if "raised" in outcome], outcomes
    return {name: outcome["got"] for name, outcome in outcomes.items()}


def names():
    return re.findall(r"^@case\ndef (\w+)", "\n".join(SOURCE), re.MULTILINE)


@pytest.mark.parametrize("name", names())
def test_a_fault_is_found_and_a_right_function_has_none(cases, name):
    found = [(finding["kind"], finding["got"]) for finding in cases[name]["findings"]]
    expected = FOUND.get(name, [])
    assert [kind for kind, _ in found] == [kind for kind, _ in expected], found
    for (_, got), (_, words) in zip(found, expected, strict=True):
        assert words is None or got == words


def test_every_expectation_is_of_a_case():
    assert set(FOUND) | set(RESULTS) | set(LIKELY) <= set(names())


@pytest.mark.parametrize("name", LIKELY)
def test_the_likely_reason_is_told(cases, name):
    assert cases[name]["findings"][0]["likely"] == LIKELY[name]


@pytest.mark.parametrize("name", RESULTS)
def test_results_come_out_right(cases, name):
    assert cases[name]["results"] == RESULTS[name]


@pytest.mark.parametrize("name", [name for name in FOUND if FOUND[name][0][0] in IN_A_KERNEL])
def test_the_line_is_the_learners_own(cases, name):
    for finding in cases[name]["findings"]:
        assert finding["source"] == SOURCE[finding["line"] - 1].strip()
        assert "tl." in finding["source"]


def test_an_access_outside_stops_the_function(cases):
    assert cases["a_row_read_past_its_end"]["raised"].startswith("OutOfBounds: tl.load of v_a[40, 80] at element 3200")


def test_an_exception_in_a_kernel_keeps_its_type(cases):
    raised = cases["an_exception_in_a_kernel"]["raised"]
    assert raised.startswith("ValueError: ") and "incompatible dimensions at index 0: 4 and 8" in raised


@pytest.mark.parametrize("name", POISON)
def test_undefined_values_are_nan(cases, name):
    assert math.isnan(cases[name]["results"][0][0])


@pytest.mark.parametrize(
    "name, large",
    [
        ("a_masked_lane_is_the_maximum", 1e30),
        ("a_masked_lane_is_the_maximum_in_float16", 60000),
        ("a_masked_lane_is_the_maximum_in_bfloat16", 1e30),
    ],
)
def test_undefined_values_are_seen_by_a_maximum_and_by_a_comparison(cases, name, large):
    top, numbers, kept = cases[name]["results"][0]
    assert top == pytest.approx(large, rel=1e-2)
    assert (numbers, kept) == (3, -2)  # two of its own, one of the two masked ones; tl.where takes both out


def test_one_undefined_value_is_large_or_nan_by_the_seed_and_by_the_row(cases):
    by_seed = [cases[f"one_masked_lane_is_the_maximum{more}"]["results"][0][0] for more in ("", "_by_another_seed")]
    by_row = cases["a_masked_lane_of_every_row_is_the_maximum"]["results"][0]
    assert sorted(by_seed) == sorted(by_row) == [-1, pytest.approx(1e30)]


@pytest.mark.parametrize("name", GARBAGE)
def test_undefined_integers_are_no_sensible_index(cases, name):
    assert cases[name]["results"][0][0] > 1 << 30


def test_programs_run_in_a_shuffled_order_that_a_seed_repeats(cases):
    shuffled = cases["programs_shuffled"]["results"][0]
    assert sorted(shuffled) == list(range(8)) and shuffled != list(range(8))
    assert cases["programs_shuffled_in_the_same_way_again"]["results"][0] == shuffled


def test_lanes_that_share_an_address_count_once_and_every_access_counts(cases):
    traffic = cases["bytes_are_counted"]["launches"][0]["traffic"]
    # Two programs. x: 8 + 8 floats and a tile of 2 x 4 different ones each; s: 2 floats each; o: 7 of 8 each.
    assert Traffic(**traffic["x_ptr"]) == Traffic(loaded=2 * 24 * 4, distinct_loaded=16 * 4)
    assert Traffic(**traffic["s_ptr"]) == Traffic(loaded=2 * 2 * 4, distinct_loaded=2 * 4)
    assert Traffic(**traffic["o_ptr"]) == Traffic(stored=2 * 7 * 4, distinct_stored=2 * 7 * 4)


def test_an_atomic_counts_as_a_load_and_a_store(cases):
    traffic = cases["programs_add_with_atomics"]["launches"][0]["traffic"]["o_ptr"]
    assert Traffic(**traffic) == Traffic(16, 4, 16, 4)


def test_copies_by_torch_are_traffic_too(cases):
    copies = cases["torch_moves_data_about"]["copies"]
    # cat: 2 x 3 halves; contiguous: 6; to float32: 6; pad 3 x 2 to 3 x 4; copy_: 3 halves; stack: 3 + 3; clone: 6.
    moved = [(one["kernel"], one["traffic"]["from 0"]["loaded"], one["traffic"]["to"]["stored"]) for one in copies]
    assert moved == [
        ("torch.cat", 6, 12),
        ("torch.contiguous", 12, 12),
        ("torch.to", 12, 24),
        ("torch.pad", 24, 48),
        (".copy_()", 6, 12),
        ("torch.stack", 12, 24),
        ("torch.clone", 24, 24),
    ]
    assert copies[0]["tensors"] == {"from 0": "x", "from 1": "x", "to": "a copy of x"}
    assert cases["a_right_copy"]["copies"] == []


def test_notes_survive_the_wire(cases):
    from drills.instruments.notes import Notes

    tree = {name: cases["torch_moves_data_about"][name] for name in Notes().to_json()}
    assert Notes.from_json(tree).to_json() == tree


def test_a_launch_is_noted_as_the_jit_would_specialize_it(cases):
    launch = cases["a_launch_is_noted"]["launches"][0]
    assert launch["signature"] == {
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "n": "i32",
        "stride": "i32",
        "one": "constexpr",
        "wide": "i64",
        "big": "i64",
        "scale": "fp32",
        "flag": "u1",
        "none": "constexpr",
        "pair": ["*fp32", "i32"],
        "KIND": "constexpr",
        "COMBINE": "constexpr",
    }
    assert launch["constants"]["one"] == 1 and launch["constants"]["none"] is None
    assert launch["constants"]["KIND"] == {"dtype": "fp16"}
    assert launch["constants"]["COMBINE"]["function"] == "combine"
    assert launch["divisible"] == ["y_ptr", "wide", "pair.0", "pair.1"]
    assert (launch["num_warps"], launch["num_stages"], launch["options"]) == (8, 2, {"maxnreg": 64})
    assert launch["shapes"] == {"x_ptr": [4], "y_ptr": [5], "pair.0": [5]}
    assert launch["grid"] == [1, 1, 1] and SOURCE[launch["line"] - 1].startswith("@triton.jit")


def test_a_named_tuple_is_noted_with_its_fields(cases):
    (launch,) = cases["strides_in_a_named_tuple"]["launches"]
    assert launch["signature"]["by"] == {"tuple": ["i32", "constexpr"], "fields": ["row", "column"]}
    assert launch["constants"]["FIXED"] == {"tuple": [100, 0], "fields": ["row", "column"]}
    assert cases["strides_in_a_named_tuple"]["results"] == [[131.0]]


def test_an_autotuned_kernel_is_launched_once_with_its_first_configuration(cases):
    (launch,) = cases["an_autotuned_launch_is_noted_once"]["launches"]
    assert (launch["constants"]["BLOCK"], launch["num_warps"], launch["num_stages"]) == (8, 2, 4)


def test_tensors_have_the_names_of_arguments_results_and_workspaces(cases):
    launch = cases["the_last_program_adds_up_after_an_atomic"]["launches"][0]
    assert launch["tensors"] == {
        "x_ptr": "x",
        "part_ptr": "workspace 0",
        "count_ptr": "workspace 1",
        "o_ptr": "result 0",
    }
    assert cases["arguments_in_lists"]["launches"][0]["tensors"]["x_ptr"] == "levels[0][1]"


def test_a_workspace_keeps_its_name_whatever_the_kernel_calls_it(cases):
    first, second = cases["a_workspace_is_passed_under_an_arguments_name"]["launches"]
    assert first["tensors"] == {"v": "v", "o_ptr": "workspace 0"}
    assert second["tensors"] == {"v": "workspace 0", "o_ptr": "result 0"}
    assert [one["traffic"]["v"]["distinct_loaded"] for one in (first, second)] == [4 * 4, 4 * 4]


def test_findings_say_what_is_allowed(cases):
    likely = cases["torch_computes"]["findings"][0]["likely"]
    assert "allocate, fill, view, copy and cast" in likely and "size 0" in likely


def test_the_recorder_is_imported_without_torch_or_triton():
    from drills import instruments

    imports = [line for line in inspect.getsource(instruments).splitlines() if re.match(r"(import|from) ", line)]
    assert not any("torch" in line or "triton" in line for line in imports)
