"""Failures that need no comparison: each has its level, says what happened, and what to do."""

import pytest

from drills import judge
from drills.instruments.notes import Finding
from drills.lessons import l1_online_softmax


@pytest.mark.parametrize(
    "kind, words, level",
    [
        ("wrong_value", "", "edge"),
        ("out_of_bounds", "", "memory"),
        ("race", "", "memory"),
        ("masked_lane", "", "memory"),
        ("not_triton", "", "edge"),
        ("traffic", "", "traffic"),
        ("compile_error", "", "compile"),
        ("timeout", "", "edge"),
        ("crash", "the process died (SIGSEGV)", "memory"),
        ("crash", "the process died (SIGFPE)", "edge"),
    ],
)
def test_the_level_that_a_failure_counts_against(kind, words, level):
    assert judge.level_of(kind, "edge", words) == level


def test_a_finding_keeps_its_parts():
    found = Finding("out_of_bounds", "tl.load of v[3] at element 3", "mask it", "inside", 31, "x = tl.load(p)")
    failure = judge.finding(found, "value", "merge_state(…)")
    assert (failure.level, failure.got, failure.likely, failure.line) == ("memory", found.got, "mask it", 31)
    assert failure.called == "merge_state(…)" and failure.source == "x = tl.load(p)"


def test_a_finding_calls_results_by_name():
    found = Finding("race", "programs 1 and 0 both store element [0] of result 1[5]; result 2[5] is right")
    softmax_stats = l1_online_softmax.LESSON.exercise("softmax_stats")
    got = judge.finding(found, "value", exercise=softmax_stats).got
    assert got == "programs 1 and 0 both store element [0] of the result l[5]; result 2[5] is right"


@pytest.mark.parametrize(
    "kind, message, word",
    [
        ("NotImplementedError", "merge_state: your turn", "stub"),
        ("ValueError", "arange's range must be a power of 2", "next_power_of_2"),
        ("ValueError", "arange's arguments must be of type tl.constexpr", "tl.constexpr"),
        ("ValueError", "Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8", "[:, None]"),
        ("ValueError", "range() arg 3 must not be zero", "max(N, 1)"),
        ("ValueError", "arange's end argument must be greater than the start argument", "max(N, 1)"),
        ("ValueError", "Unsupported ptr type <['2'], int32> in `tl.load`", "no address"),
        ("ValueError", "Value argument cannot be block type if pointer argument is not a block", "reduce it"),
        ("NameError", "name 'w' is not defined", "called w there: a typing error? A kernel sees its parameters"),
        ("NameError", "name 'exp' is not defined", "write tl.exp"),
        ("NameError", "name 'math' is not defined", "not imported, and no kernel can use it"),
        ("NameError", "name 'tl' is not defined", "import triton.language as tl"),
        ("AttributeError", "'ellipsis' object has no attribute 'type'", "Hints leave out"),
        ("TypeError", "cannot convert Ellipsis of type <class 'ellipsis'> to tensor", "Hints leave out"),
        ("TypeError", "'function' object is not subscriptable", "@triton.jit"),
        ("TypeError", "missing a required argument: 'stride_col'", "compare the launch"),
        ("TypeError", "failed to specialize argument of type: builtin_function_or_method", "parentheses"),
        ("TypeError", "failed to specialize argument of type: numpy.ndarray", "no NumPy array"),
        ("KeyError", "'Keyword argument FOO was specified but unrecognised'", "no parameter of that name"),
        ("AttributeError", "'NoneType' object has no attribute 'type'", "is None"),
        ("AttributeError", "'torch.dtype' object has no attribute 'scalar'", "tl.float32"),
        ("RuntimeError", "Cannot call @triton.jit'd outside of the scope of a kernel", "grid, kernel[(M,)](...)"),
        ("AssertionError", "Torch not compiled with CUDA enabled", "device=x.device"),
        ("AssertionError", "not contiguous", ""),
        ("AssertionError", "input and other must have equal ranks >= 2", "tl.sum(q[None, :] * k, 1)"),
        ("AssertionError", "input and other must have equal reduction dimensions", "tl.trans"),
        ("AssertionError", "Both operands must be same dtype. Got fp32 and fp16", "p.to(v.dtype)"),
        ("RuntimeError", "breakpoint() needs the grader's --debug, where your code runs", "Add --debug"),
        ("EOFError", "EOF when reading a line", "--debug"),
        ("ModuleNotFoundError", "No module named 'helper'", "graded alone"),
        ("RecursionError", "maximum recursion depth exceeded", "calls itself without end"),
        ("RecursionError", "maximum recursion depth exceeded in comparison", "a GPU kernel has no recursion"),
        ("ZeroDivisionError", "division by zero", ""),
    ],
)
def test_usual_exceptions_come_with_advice(kind, message, word):
    failure = judge.raised(kind, message, "value", line=3, source="x")
    assert failure.got == f"{kind}: {message}" and word in failure.likely and bool(failure.likely) == bool(word)


def test_sizes_in_a_message_are_plain_numbers():
    message = "Expected pointer argument to have shape ['constexpr[2]'] but got ['constexpr[1]']"
    got = judge.raised("ValueError", message, "value", line=3, source="x").got
    assert got == "ValueError: Expected pointer argument to have shape [2] but got [1]"


@pytest.mark.parametrize(
    "kind, message, source, words",
    [
        ("AssertionError", "", "assert x.is_cuda", "on the CPU here"),
        ("AssertionError", "needs a GPU", 'assert q.device.type == "cuda", "needs a GPU"', "Leave the check out."),
        ("AssertionError", "", "assert x.is_contiguous()", ""),
        (
            "AssertionError",
            "Torch not compiled with CUDA enabled",
            "sms = torch.cuda.get_device_properties(x.device).multi_processor_count",
            "only if torch.cuda.is_available()",
        ),
        ("RuntimeError", "No CUDA GPUs are available", 'y = torch.empty(4, device="cuda")', "device=x.device"),
        (
            "RuntimeError",
            "0 active drivers ([]). There should only be one.",
            "DEVICE = triton.runtime.driver.active.get_active_torch_device()",
            "only if torch.cuda.is_available()",
        ),
        (
            "FileNotFoundError",
            "[Errno 2] No usable temporary directory found in ['/tmp']",
            "@torch.compile",
            "torch.compile and torch.library need some",
        ),
    ],
)
def test_what_asks_for_a_gpu_or_for_files_is_told_that_there_are_none(kind, message, source, words):
    likely = judge.raised(kind, message, "value", line=3, source=source).likely
    assert words in likely and bool(likely) == bool(words)


@pytest.mark.parametrize("source, word", [("l = tl.zeros(BLOCK, tl.float32)", "(BLOCK,)"), ("for i in N:", "")])
def test_a_shape_that_is_no_tuple_is_told_from_other_numbers_that_do_not_iterate(source, word):
    likely = judge.raised("TypeError", "'int' object is not iterable", "value", line=3, source=source).likely
    assert word in likely and bool(likely) == bool(word)


def test_an_exception_as_the_file_is_loaded_expects_no_result():
    assert judge.raised("ValueError", "no", "value", called="softmax(x)").expected.startswith("a result")
    assert judge.raised("ValueError", "no", "value").expected.startswith("a file that can be loaded")


def test_what_only_a_gpu_can_run_is_not_called_wrong():
    words = "libdevice.erf runs on a GPU only: this grader runs kernels in an interpreter and cannot judge it"
    failure = judge.raised("NotInterpreted", words, "value", line=3, source="x")
    assert (failure.kind, failure.got) == ("not_interpreted", words)
    assert "may well be right" in failure.likely and "tl.exp2" in failure.likely
    assert "result" not in failure.expected


def test_every_death_says_what_to_do():
    for kind in ("timeout", "crash", "exit", "flood", "oversized", "malformed", "memory", "processes"):
        failure = judge.death(kind, "what happened", "value")
        assert failure.got == "what happened" and failure.likely


def test_a_failure_is_one_line_in_a_log():
    failure = judge.death("timeout", "no answer in 10 s", "value", "merge_state(…)")
    assert str(judge.GradedFailure(failure)).startswith("timeout: got no answer in 10 s; expected an answer; ")
