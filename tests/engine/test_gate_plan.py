"""What the gate decides without compiling: which notes it takes, what stands for what, what it shows and advises."""

from __future__ import annotations

import doctest
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from gate_bench import PLAIN, C, launch

from drills.author import widths
from drills.instruments import constants, gate_advice, gate_binary
from drills.instruments.constants import closure_of, encode, tupled
from drills.instruments.gate_binary import accesses, figures, statements
from drills.instruments.gate_depth import Depth
from drills.instruments.gate_plan import Entry, Plan
from drills.instruments.gate_report import CompileReport, main_width, width_advice
from drills.instruments.gate_spec import Malformed, Spec, checked
from drills.instruments.gate_store import kernels_only
from drills.instruments.gate_text import ATOMICS, PRODUCTS, Text
from drills.lessons.l4_merge_states import LESSON
from drills.report.model import ExerciseResult, LessonResult

FILE = Path(__file__).with_name("gate_accepted.py")
NOTE = launch("calls_a_helper", FILE, PLAIN)
UNFIT = (["a"], ["a", "a"], ["a", "b()"], ["a", "class"], ["a", "_b"], ["a", ""], ["a", 1], "ab", {"a": 1, "b": 2})
"""What cannot be the names of a NamedTuple's two items; the texts are no list."""


class Strides(NamedTuple):
    row: int
    column: float


def spec(**more: object) -> Spec:
    kinds = {"v": "*fp16", "s": "*fp32", "D": (C, 80), "B": (C, 128), **more.pop("signature", {})}
    return checked(launch("copies_rows", FILE, kinds, **more))


def entry(one: Spec, text: bytes = b"") -> Entry:
    return Entry("f.py", text, "0", Text(text), one)


def plan(*specs: Spec, text: bytes = b"", thorough: bool = False) -> Plan:
    made = Plan(1.0, thorough)
    for one in specs:
        made.add("x", entry(one, text))
    return made


FRONT, TILES, LOWERED, FULL = Depth


def wanted(made: Plan) -> list[tuple[int, int, Depth]]:
    """(place among the specialisations, arch, depth)."""
    order = list(made.entries.values())
    return sorted((order.index(one), arch, depth) for one, arch, depth in made.wanted())


@pytest.mark.parametrize("module", [constants, gate_advice, gate_binary])
def test_the_examples_hold(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "a; import os"},
        {"kernel": 7},
        {"line": -1},
        {"line": True},
        {"num_warps": "4"},
        {"num_warps": 10**9},
        {"signature": {"x": "*fp32; rm"}},
        {"signature": {"__x y": "i32"}},
        {"signature": ["x"]},
        {"signature": {f"x{i}": "i32" for i in range(300)}},
        *({"signature": {"x": {"tuple": ["i32", "i32"], "fields": fields}}} for fields in UNFIT),
        {"signature": {"x": {"tuple": "i32", "fields": ["a", "b", "c"]}}},
        {"signature": {"x": {"tuple": ["i32"], "fields": ["a"], "other": 1}}},
        {"constants": {"B": math.inf}},
        {"constants": {"B": "x" * 50_000}},
        {"constants": {"B": ...}},
        {"divisible": [["x"]]},
        {"divisible": ["x.y"]},
        {"closure": {"f": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}},
    ],
    ids=str,
)
def test_notes_that_no_instrument_writes_are_malformed(change):
    with pytest.raises(Malformed):
        checked(replace(NOTE, **change))


def test_the_same_specialisation_has_the_same_text():
    twin = replace(NOTE, signature=dict(reversed(NOTE.signature.items())), grid=(9, 9, 9))
    assert checked(twin).text == checked(NOTE).text
    assert checked(replace(NOTE, num_warps=8)).text != checked(NOTE).text


def test_a_call_is_shown_with_its_types_and_constants():
    assert checked(NOTE).called() == "calls_a_helper(x: *fp32, n: i32, B=64)"
    wide = {f"pointer_{i}": "*fp16" for i in range(12)}
    shown = checked(launch("calls_a_helper", FILE, {**wide, "BLOCK_N": (C, 64)})).called()
    assert shown.startswith("calls_a_helper(pointer_0: *fp16, ") and shown.endswith(", …, BLOCK_N=64)")
    assert len(shown) <= 110


@pytest.mark.parametrize("fields", UNFIT, ids=str)
def test_a_named_tuple_is_made_of_identifiers_only(fields):
    with pytest.raises(ValueError, match="different identifiers"):
        tupled((1, 2), fields)


def test_a_named_tuple_keeps_its_fields():
    kind = {"tuple": ["*fp16", {"tuple": ["i32"], "fields": ["row"]}], "fields": ["data", "by"]}
    made = checked(replace(NOTE, signature={**NOTE.signature, "t": kind}))
    assert made.signature["t"] == kind and made.reads_half
    assert "t: (data: *fp16, by: (row: i32))" in made.called()
    assert encode(Strides(3, math.inf)) == {"tuple": [3, {"float": "inf"}], "fields": ["row", "column"]}
    named = tupled((3, 4), ["row", "column"])
    assert (named.row, named.column) == named == (3, 4)


def test_the_largest_with_the_most_alignment_stands_for_the_rest():
    small, large = spec(signature={"B": (C, 64)}), spec()
    aligned = spec(divisible="v s")
    assert wanted(plan(small, large, aligned)) == [(0, 80, FRONT), (2, 80, FULL), (2, 90, FULL)]


def test_alignment_alone_does_not_go_through_the_front_end_twice():
    odd, even = spec(signature={"B": (C, 64)}), spec(signature={"B": (C, 64)}, divisible="v")
    assert wanted(plan(odd, even, spec())) == [(0, 80, FRONT), (2, 80, FULL), (2, 90, FULL)]


def test_types_are_one_family_where_there_is_no_matrix_product():
    half, other, full = spec(), spec(signature={"v": "*bf16"}), spec(signature={"v": "*fp32"})
    machine_code = [one[1:] for one in wanted(plan(half, other, full)) if one[2] is FULL]
    assert sorted(machine_code) == [(80, FULL), (90, FULL)]


def test_flags_make_families_and_sizes_do_not():
    on, off = spec(signature={"F": (C, True)}), spec(signature={"F": (C, False)})
    assert len(wanted(plan(on, off))) == 4
    assert len(wanted(plan(spec(signature={"H": (C, 1)}), spec(signature={"H": (C, 32)})))) == 3


def test_a_kernel_without_an_argument_goes_with_the_one_that_has_it():
    without, given = spec(signature={"M": (C, None)}), spec(signature={"M": "*u1", "v": "*fp32"})
    assert [one for one in wanted(plan(without, given)) if one[2] is FULL] == [(1, 80, FULL), (1, 90, FULL)]


ADDS = b"""import triton
import triton.language as tl
@triton.jit
def copies_rows(v, s, count, D, B):
    at = s + tl.arange(0, B)
    tl.atomic_add({}, tl.load(v).to(tl.float32))
"""


@pytest.mark.parametrize(
    ("target", "families"),
    [(b"at + 1", 1), (b"count", 1), (b"v", 3), (b"s + tl.load(v)", 3), (b"*s", 3)],
)
def test_atomics_are_compiled_by_the_types_that_they_may_change(target, families):
    text = ADDS.replace(b"{}", target)
    line = 1 + text[: text.index(b"def ")].count(b"\n")
    notes = [replace(spec(signature={"v": kind}), line=line) for kind in ("*fp16", "*bf16", "*fp32")]
    assert sum(depth is FULL and arch == 90 for _, arch, depth in wanted(plan(*notes, text=text))) == families


@pytest.mark.parametrize("more", [b"add = tl.atomic_add\n", b"@triton.jit\ndef tl_add(x):\n    tl.atomic_add(x, 1)\n"])
def test_atomics_elsewhere_are_compiled_by_all_types(more):
    text = ADDS.replace(b"{}", b"tl_add(s)" if b"def" in more else b"s") + more
    line = 1 + text[: text.index(b"def copies")].count(b"\n")
    assert Text(text).targets(line) is None


def test_products_are_compiled_by_warps_and_width_atomics_by_type():
    kinds = ("*fp16", "*bf16", "*fp32")
    notes = [spec(num_warps=warps, signature={"v": kind}) for warps in (4, 8) for kind in kinds]

    def machine_code(text: bytes) -> int:
        return sum(depth is FULL for _, _, depth in wanted(plan(*notes, text=text)))

    assert machine_code(b"tl.dot(a, b)") == 2 * 2 * 2
    assert machine_code(b"tl.atomic_add(a, b)") == 2 * 2 * 3
    assert machine_code(b"a + b") == 2
    assert sum(depth is FULL for _, _, depth in wanted(plan(*notes, thorough=True))) == 2 * 2 * 3


TWO_KERNELS = b"""
@triton.jit
def plain(x):
    return helper(x)


def helper(x):
    return x


@triton.jit
def multiplies(x):
    return through(x)


def through(x):
    return tl.dot(x, x)
"""


def test_a_product_counts_where_it_is_reached():
    text = Text(TWO_KERNELS)
    assert [text.says(line, PRODUCTS) for line in (3, 4, 12, 13)] == [False, False, True, True]
    assert not any(text.says(line, ATOMICS) for line in (3, 12))
    named_outside = Text(TWO_KERNELS + b"\nproduct = tl.dot\n")
    assert named_outside.says(3, PRODUCTS)
    assert Text(b"tl.dot(").says(1, PRODUCTS)


def test_machine_code_waits_until_its_exercise_launches_no_more():
    made = plan(spec(), spec(signature={"B": (C, 64)}))
    assert made.next(going_on="x").depth is FRONT
    assert made.next(going_on="x") is None and made.open(going_on="x") == []
    assert made.next(only="y") is None
    assert made.next(going_on="y").depth is FULL
    assert made.next().depth is FULL


def test_a_kernel_that_the_exercise_under_way_launches_too_comes_last():
    made = plan(spec(), replace(spec(), kernel="another"))
    made.add("y", entry(spec(signature={"B": (C, 64)})))
    deep = [(one.spec.kernel, arch) for one, arch, depth in made.open(going_on="y") if depth is FULL]
    assert deep == [("another", 90), ("another", 80), ("copies_rows", 90), ("copies_rows", 80)]
    assert [one.spec.kernel for one, _, _ in made.open()][0] == "copies_rows"


def test_a_refusal_by_the_front_end_needs_no_machine_code():
    one = entry(spec())
    one.settle(80, FRONT, {"ok": False, "error": "no"})
    assert one.has(80, FULL) and not one.has(90, FRONT)
    one.settle(80, FRONT, {"ok": True, "figures": {}})
    assert not one.has(80, LOWERED) and one.has(80, FRONT)
    one.settle(80, LOWERED, {"ok": True, "figures": {"shared": 7}})
    assert not one.has(80, FULL) and one.has(80, LOWERED)
    assert one.best_known(80, 1.0).shared == 7


def test_an_older_file_of_the_same_path_is_forgotten():
    made = Plan(1.0, False)
    old, new = entry(spec()), replace_sha(entry(spec()))
    made.add("x", old)
    made.add("x", new)
    assert list(made.exercises["x"].values()) == [new]


def replace_sha(one: Entry) -> Entry:
    one.sha256 = "1"
    return one


def test_only_what_kernels_depend_on_names_an_answer():
    base = b"import triton\n@triton.jit\ndef k(x):\n    pass\ndef wrap(x):\n    return 1\n"
    assert kernels_only(base) == kernels_only(base.replace(b"return 1", b"return 2"))
    assert kernels_only(base) != kernels_only(base.replace(b"pass", b"return"))
    made = base + b"SIZE = wrap(3)\n"
    assert kernels_only(made) != kernels_only(made.replace(b"return 1", b"return 2"))
    nested = base.replace(b"    return 1", b"    @triton.jit\n    def inner(y):\n        pass\n    return inner")
    assert kernels_only(nested) != kernels_only(nested.replace(b"return inner", b"return 1"))
    assert kernels_only(b"def broken(") == b"def broken("


def test_captured_values_and_constants_are_written_as_json():
    width, text = 64, {"a set"}

    def kernel():
        return width, text, kernel

    assert closure_of(kernel)["width"] == 64
    assert closure_of(kernel)["text"] == {"other": "set"}
    assert closure_of(kernel)["kernel"]["function"] == "kernel"
    assert encode((True, 2**70, math.nan, math)) == {"tuple": [True, 2**70, {"float": "nan"}, {"module": "math"}]}


PTX = """
.file 1 "/a" "k.py"
.file 2 "/b/standard.py"
 .loc 1 8 2 // k.py:8:2
 @%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
 @%p1 ld.global.b32 { %r2 }, [ %rd1 + 4 ];
 .loc 1 9 2
 @%p2 ld.global.L1::evict_first.v2.b64 { %rd3, %rd4 }, [ %rd2 + 0 ];
 .loc 2 9 2
 cp.async.ca.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x4, 0x4;
 .loc 1 10 2
 @%p3 st.global.v4.b16 [ %rd5 + 0 ], { %rs1, %rs2, %rs3, %rs4 };
 atom.global.add.f32 %f1, [ %rd5 ], %f2;
 ld.param.b64 %rd9, [k_param_0];
"""
IR = """
 %a = tt.load %p, %m, %o : tensor<4x128x!tt.ptr<f16>> loc(#loc4)
 %b = tt.load %q : !tt.ptr<f32> loc(#loc1)
 tt.store %r, %v, %m : tensor<8x!tt.ptr<bf16>> loc(#loc3)
#loc1 = loc("/a/k.py":8:2)
#loc2 = loc("/a/k.py":9:2)
#loc3 = loc(callsite("/a/k.py":10:2 at #loc1))
#loc4 = loc("x"(#loc2))
"""
LOG = """ptxas info    : Function properties for k
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers"""


def test_accesses_are_read_from_the_ptx():
    assert [(one.kind, one.width, one.place) for one in accesses(PTX)] == [
        ("load", 4, ("k.py", 8)),
        ("load", 4, ("k.py", 8)),
        ("load", 16, ("k.py", 9)),
        ("load", 4, ("standard.py", 9)),
        ("store", 8, ("k.py", 10)),
    ]


def test_the_width_is_that_of_the_loads_that_move_most():
    assert statements(IR) == {
        ("load", ("k.py", 9)): (1024, 512),
        ("load", ("k.py", 8)): (4, 1),
        ("store", ("k.py", 10)): (16, 8),
    }
    made = figures(IR, PTX, LOG, 128)
    assert (made.load_width, made.store_width, made.tile) == (16, 8, 512)
    assert (made.registers, made.spills, made.shared, made.loads) == (40, 28, 128, {4: 3, 16: 1})
    assert figures("", PTX, "", 0).load_width == 16
    assert figures("", "", "", 0).load_width == 0


@pytest.mark.parametrize(
    ("tile", "width", "reason"),
    [(128, 2, "a single element"), (256, 2, "2 elements a thread"), (4096, 4, "last axis")],
)
def test_narrow_loads_come_with_a_reason(tile, width, reason):
    mine = CompileReport("k", "sm_90", True, load_width=width, tile=tile, threads=128, half=True)
    wide = replace(mine, load_width=16, half=False)
    assert reason in width_advice([wide, mine], 16)
    assert main_width([wide, mine]) == width
    assert width_advice([mine], 4) == ""
    assert width_advice([replace(mine, ok=False)], 16) == ""


def test_a_width_that_is_stated_wrong_is_named():
    kernel = CompileReport("k", "sm_90", True, load_width=8).to_json()
    exercise = ExerciseResult("merge_state", "passed", kernels=[kernel])
    result = LessonResult("l4_merge_states", "", "", exercises=[exercise])
    assert list(widths.problems(result, LESSON)) == [
        "l4.merge_state: load_width is 16, the solution's loads are 8 bytes wide"
    ]
    result.exercises[0].kernels[0]["load_width"] = 16
    assert not list(widths.problems(result, LESSON))


HEAD = "import triton.language as tl\nfrom other import far\n\n@triton.jit\ndef helper(x):\n    return {help}\n\n"
KERNEL = "@triton.jit\ndef copies_rows(v, s, D: tl.constexpr, B: tl.constexpr):\n    x = tl.load(v)\n    {line}\n"


def in_file(line: str, help: str = "x", **more: object) -> Entry:
    """The kernel with this line, in a file whose helper gives this."""
    text = (HEAD + KERNEL).format(line=line, help=help).encode()
    line = text.decode().splitlines().index("    x = tl.load(v)")
    return entry(replace(spec(**more), line=line), text)


@pytest.mark.parametrize(
    "line",
    [
        "tl.store(s, helper(tl.exp2(x)))",
        "tl.store(s, helper(x, x, x, x, x, x, x, x))",
        "for n in range(D): x += tl.sum(x, 0)",
        "x = tl.load(tl.make_block_ptr(v, (D,), (1,), (0,), (B,), (0,)))",
        "for n in tl.range(0, D, loop_unroll_factor=2): x += tl.sum(x, 0)",
    ],
)
def test_a_plain_kernel_gets_machine_code_for_one_target(line):
    made = Plan(1.0, False)
    made.add("x", in_file(line))
    assert wanted(made) == [(0, 80, FRONT), (0, 90, FULL)]


@pytest.mark.parametrize(
    "unlike",
    [
        in_file("tl.dot_scaled(x, s, 'e4m3', x, s, 'e4m3')"),
        in_file("tl.dot(x, x)", signature={"v": "*i8"}),
        in_file("tl.dot(x.to(tl.float64), x)"),
        in_file("tl.dot(x, x)", options={"maxnreg": 64}),
        in_file("tl.atomic_add(s, x)"),
        in_file("tl.store(s, helper(x))", help="tl.inline_asm_elementwise('', '', [x], tl.float32, True, 1)"),
        in_file("far(x)"),
        in_file("tl.extra.cuda.gdc_wait()"),
        in_file("x.to(tl.float8e4nv)"),
        in_file("x.to('fp8')"),
        in_file("for n in tl.range(0, D, warp_specialize=True): x += 1"),
        in_file("for n in tl.range(0, D, 1, None, None, False, False, True): x += 1"),
        in_file("tl.store(s, helper(*x))", help="tl.range(*x)"),
        in_file("getattr(tl, 'dot')(x, x)"),
        in_file("tl.store(s, x)", options={"maxnreg": 64}),
        in_file("tl.store(s, x)", signature={"v": "*fp8e4nv"}),
        entry(spec()),
    ],
    ids=range(17),
)
def test_what_a_target_may_lack_is_compiled_for_both(unlike):
    made = Plan(1.0, False)
    made.add("x", unlike)
    assert wanted(made) == [(0, 80, FULL), (0, 90, FULL)]


@pytest.mark.parametrize("shared, more", [(166_912, []), (166_913, [(0, 80, LOWERED)])])
def test_a_plain_kernel_that_needs_more_than_the_older_target_has_is_compiled_for_it_too(shared, more):
    made, one = Plan(1.0, False), in_file("tl.store(s, x)")
    made.add("x", one)
    one.settle(90, FULL, {"ok": True, "figures": {"shared": shared}})
    assert wanted(made) == sorted([*([] if more else [(0, 80, FRONT)]), (0, 90, FULL), *more])


HALF, WIDE = {"v": "*fp16"}, {"v": "*fp32"}


def products(*differing: dict) -> tuple[Plan, list[Entry]]:
    """A plan of specialisations of a kernel with tl.dot, and these."""
    made, all_of_them = Plan(1.0, False), [in_file("tl.dot(x, x)", **dict(more)) for more in differing]
    for one in all_of_them:
        made.add("x", one)
    return made, all_of_them


def further(made: Plan) -> list[tuple[int, int, Depth]]:
    """What is wanted beyond the front end."""
    return [one for one in wanted(made) if one[2] is not FRONT]


def takes(shared: int) -> dict:
    """A good answer, with bytes of shared memory."""
    return {"ok": True, "figures": {"shared": shared}}


def test_of_a_plain_product_the_largest_is_machine_code_and_its_other_families_are_lowered():
    made, _ = products({}, {"num_warps": 8}, {"signature": {"B": (C, 64)}}, {"signature": {"B": (C, False)}})
    assert further(made) == [(0, 90, FULL), (1, 90, LOWERED), (3, 90, LOWERED)]


@pytest.mark.parametrize("shared, more", [(83_456, []), (83_457, [(1, 80, LOWERED)])])
def test_a_product_that_takes_half_of_the_shared_memory_is_lowered_for_the_older_target_too(shared, more):
    made, (_, other) = products({}, {"num_warps": 8})
    other.settle(90, LOWERED, takes(shared))
    assert further(made) == sorted([(0, 90, FULL), *more, (1, 90, LOWERED)])


@pytest.mark.parametrize("shared, more", [(41_728, []), (41_729, [(0, 80, LOWERED)])])
def test_the_largest_product_is_lowered_for_the_older_target_if_it_takes_a_quarter(shared, more):
    made, (one,) = products({})
    one.settle(90, FULL, takes(shared))
    assert further(made) == [*more, (0, 90, FULL)]


@pytest.mark.parametrize("shared, depth", [(58_112, TILES), (58_113, LOWERED)])
def test_a_product_of_float32_is_lowered_if_that_of_halves_takes_a_quarter(shared, depth):
    made, (half, _) = products({"signature": HALF}, {"signature": WIDE})
    assert (1, 90, TILES) in further(made)
    half.settle(90, FULL, takes(shared))
    assert (1, 90, depth) in further(made)


@pytest.mark.parametrize("unlike", [{"num_warps": 8}, {"num_stages": 2}, {"signature": {**WIDE, "B": (C, 256)}}])
def test_a_product_of_float32_in_a_larger_tile_or_another_block_is_lowered(unlike):
    made, _ = products({"signature": HALF}, {"signature": WIDE, **unlike})
    assert (1, 90, LOWERED) in further(made)


SQUARE = "x += tl.dot(tl.zeros([B, B], tl.float16), tl.zeros([B, B], tl.float16))"


def further_of(line: str, *differing: dict) -> list[tuple[int, int, Depth]]:
    """What is wanted beyond the front end of the kernel with this line."""
    made = Plan(1.0, False, figures=False)
    for more in differing:
        made.add("x", in_file(line, **dict(more)))
    return further(made)


def test_a_product_of_float32_is_lowered_where_the_type_decides_what_is_done():
    halves, wide = {"signature": HALF}, {"signature": WIDE}
    assert further_of(SQUARE, halves, wide) == [(0, 90, LOWERED), (1, 90, TILES)]
    by_type = f"if v.dtype.element_ty == tl.float32: {SQUARE}"
    assert further_of(by_type, halves, wide) == [(0, 90, LOWERED), (1, 90, LOWERED)]


def test_a_tile_is_not_small_for_another_constant_that_is_large():
    large, small = {"signature": {"B": (C, 128), "D": (C, 1)}}, {"signature": {"B": (C, 16), "D": (C, 1 << 30)}}
    assert further_of(SQUARE, large, small) == [(0, 90, LOWERED)]
    assert further_of(SQUARE, small, large) == [(1, 90, LOWERED)]
    both = SQUARE.replace("[B, B]", "[B, D]", 1)
    assert len(further_of(both, large, small)) == 2


def test_what_a_size_decides_makes_families():
    one, two = {"signature": {"D": (C, 1)}}, {"signature": {"D": (C, 2)}}
    assert further_of(SQUARE, one, two) == [(1, 90, LOWERED)]
    assert further_of(f"if D == 1: {SQUARE}", one, two) == [(0, 90, LOWERED), (1, 90, LOWERED)]


def test_tiles_that_fit_in_any_case_are_one_family():
    tiles = [{"signature": {"D": (C, one), "B": (C, other)}} for one, other in ((16, 64), (64, 16))]
    line = "x += tl.zeros([B, D], tl.float32)"
    assert len(further_of(line, *tiles)) == 1
    assert len(further_of(line, *tiles, {"signature": {"D": (C, 1024), "B": (C, 64)}})) == 2


def test_without_figures_no_machine_code_is_made_of_what_it_cannot_refuse():
    def asks(line: str) -> list[tuple[int, int, Depth]]:
        made = Plan(1.0, False, figures=False)
        made.add("x", in_file(line))
        return further(made)

    assert asks("tl.store(s, x)") == asks("tl.dot(x, x)") == [(0, 90, LOWERED)]
    assert {depth for _, _, depth in asks("tl.atomic_add(s, x)")} == {FULL}


def test_a_front_end_that_took_it_for_one_exercise_is_not_asked_for_another():
    made, (one,) = products({"signature": {"D": (C, 7)}})
    one.settle(80, FRONT, takes(0))
    made.add("y", in_file("tl.dot(x, x)", signature={"D": (C, 7)}, divisible="v"))
    assert not [which for which, _, depth in wanted(made) if which == 1 and depth is FRONT]


def test_a_front_end_that_refused_it_for_one_exercise_is_asked_for_another():
    made, (one,) = products({"signature": {"D": (C, 7)}})
    one.settle(80, FRONT, {"ok": False, "error": "no"})
    made.add("y", in_file("tl.dot(x, x)", signature={"D": (C, 7)}, divisible="v"))
    assert (1, 80, FRONT) in wanted(made)


CALLS = """
@triton.jit
def kernel(x):
    blocks = x + 1
    tl.store(x, blocks)
    {}


def blocks(q):
    return q.element_size()


@triton.jit
def twice(x):
    return tl.dot(x, x)


def outside(x):
    return x
"""


@pytest.mark.parametrize("line, reached", [("", []), ("twice = 2", ["twice"]), ("outside(x)", ["outside"])])
def test_a_variable_called_as_a_wrapper_is_does_not_reach_it(line, reached):
    """A kernel called so is reached all the same: where a variable has no value, Triton looks outside."""
    assert [one.name for one in Text(CALLS.format(line).encode()).reached(3)] == ["kernel", *reached]
