"""Grades made by hand, one a kind of screen, for golden tests of everything that is rendered from a grade."""

from __future__ import annotations

from drills.report import problems
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult, LevelResult, TestResult
from drills.source import Problem

NAMES = {
    "l1_online_softmax": ("Softmax in one pass", ("softmax_stats", "softmax", "attend")),
    "l4_merge_states": (
        "FlashInfer's merge API",
        ("merge_state", "merge_state_in_place", "merge_states", "variable_length_merge_states"),
    ),
}
LEVELS = ("value", "edge", "memory", "traffic", "compile")


def passed(name: str, traffic: str = "1.00x", **more) -> ExerciseResult:
    """An exercise that passed on every level."""
    levels = {level: LevelResult("passed", traffic if level == "traffic" else "") for level in LEVELS}
    return ExerciseResult(name, "passed", levels, [test(name, "two states merge as one")], line=31, **more)


def failed(name: str, failure: Failure, title: str, others: int = 0, left: int = 0) -> ExerciseResult:
    """An exercise that failed at the failure's level: lower levels passed, higher ones are undecided."""
    at = LEVELS.index(failure.level)
    levels = {
        level: LevelResult("passed" if index < at else "failed" if index == at else "blocked")
        for index, level in enumerate(LEVELS)
    }
    tests = [test(name, title, failure.level, failure)]
    tests += [test(name, f"case {number}", failure.level, failure) for number in range(others)]
    tests += [TestResult(f"left {number}", "left", name, "edge", "not run") for number in range(left)]
    return ExerciseResult(name, "failed", levels, tests, line=58)


def waiting(name: str, line: int | None = 12) -> ExerciseResult:
    """An exercise whose stub is untouched."""
    return ExerciseResult(name, "not started", line=line)


def stopped(name: str) -> ExerciseResult:
    """An exercise of a file that could not be graded."""
    return ExerciseResult(name, "failed")


def gone(name: str) -> ExerciseResult:
    """An exercise of a file, or a function, that is not there."""
    return ExerciseResult(name, "missing")


def test(exercise: str, title: str, level: str = "value", failure: Failure | None = None) -> TestResult:
    """One test, failed if it has a failure."""
    return TestResult(f"test_{title}", title, exercise, level, "failed" if failure else "passed", failure, 0.02)


test.__test__ = False


def lesson(stem: str, *results: ExerciseResult, **more) -> LessonResult:
    """A lesson of mine/, its other exercises not started."""
    title, names = NAMES[stem]
    given = {result.name: result for result in results}
    exercises = [given.get(name, waiting(name)) for name in names]
    return LessonResult(stem, title, f"mine/{stem}.py", "3f2a91c8" * 8, exercises, **more)


def grade(*lessons: LessonResult, **more) -> Grade:
    """A grade of mine/ on the interpreter."""
    facts = {"target": "mine/", "device": "cpu", "versions": {"triton": "3.7.1", "torch": "2.13.0"}}
    facts |= {"isolation": "bwrap", "seconds": 4.21, "seed": 20_260_817} | more
    return Grade(lessons=list(lessons), **facts)


WRONG_VALUE = Failure(
    "wrong_value",
    "value",
    "merge_state(v_a[5, 3, 80] float16, s_a[5, 3], v_b[5, 3, 80] float16, s_b[5, 3])",
    "v[3, 1, 17] = 0.8123 (worst of 1,200; 1,150 are off)",
    "v[3, 1, 17] = 0.6602",
    "exp was used where s is in base 2: the weights are pushed apart. Use tl.exp2.",
    "exp_for_exp2",
    "content/l4_merge_states.md#exp-on-a-base-2-s",
)
OUT_OF_BOUNDS = Failure(
    "out_of_bounds",
    "memory",
    "merge_state(v_a[41, 1, 80] float32, s_a[41, 1], v_b[41, 1, 80] float32, s_b[41, 1])",
    "tl.load of v_a[41, 1, 80] at element 3280, one past the last (3279), by program (40, 0, 0)",
    "",
    "offs runs to BLOCK_D = 128 but a row has D = 80: mask with offs < D",
    "",
    "content/l4_merge_states.md#a-head-size-that-is-no-power-of-two",
    31,
    "    va = tl.load(va_ptr + pid * D + offs)",
)
COMPILE = Failure(
    "compile_error",
    "compile",
    "",
    "merge_state_kernel does not compile for sm_90: unsupported AST node type: Break",
    "",
    "The interpreter runs Python; a GPU kernel cannot leave a loop early. Compute the loop's bound before it.",
    "",
    "content/l4_merge_states.md#what-the-interpreter-lets-through",
    44,
    "        break",
)
TIMEOUT = Failure("timeout", "value", "merge_states(v[2, 3, 4, 64] float32, s[2, 3, 4])", "no answer in 10 s",
                  "", "Is there an endless loop?", line=57, source="while start < N:")  # fmt: skip
CRASH = Failure("crash", "memory", "merge_states(v[2, 3, 4, 64] float32, s[2, 3, 4])",
                "your kernel read outside a tensor and the process died (SIGSEGV)")  # fmt: skip
RACE = Failure(
    "race",
    "memory",
    "merge_state(v_a[5, 3, 80] float16, s_a[5, 3], v_b[5, 3, 80] float16, s_b[5, 3])",
    "programs (0, 0, 0) and (1, 0, 0) both write result 0 at element 64",
    "each element is written by one program",
    "",
    "",
    "",
    40,
    "    tl.store(out_ptr + pid * 64 + offs, merged)",
)
HOSTILE = Failure(
    "exception",
    "value",
    "merge_state(v_a[1])",
    "\x1b[2J\x1b]0;owned\x07[bold red]PASS[/] \u202eSSAP\u202c " + "z\u0301\u0301\u0301\u0301\u0301" * 5 + " x" * 4000,
    "[/nothing] :smile:",
    source="[link=file:///etc/passwd]" + "y" * 500,
    line=3,
)
SYNTAX = problems.from_source(
    Problem("syntax", "unmatched ')'", 14, 18, "    y = helper(x))"), "mine/l4_merge_states.py"
)
MISSING = problems.from_source(Problem("missing", "is not there"), "mine/l4_merge_states.py")
KERNELS = [
    {"kernel": "merge_state_kernel", "target": target, "ok": True, "load_width": 16, "store_width": width,
     "registers": registers, "spills": 0}
    for target in ("sm_80", "sm_90") for width, registers in ((16, 38), (8, 30))
]  # fmt: skip

SCREENS: dict[str, Grade] = {
    "all_not_started": grade(lesson("l1_online_softmax"), lesson("l4_merge_states"), seed=None, seconds=0.2),
    "half_done": grade(
        lesson(
            "l1_online_softmax", passed("softmax_stats"), passed("softmax", "2.00x"),
            passed("attend", advice=["loads are 2 bytes wide, the solution's are 16: see l4, a tile of rows"]),
        ),
        lesson("l4_merge_states", passed("merge_state"),
               failed("merge_states", WRONG_VALUE, "two states merge as one", others=6)),
    ),
    "wrong_value": grade(lesson("l4_merge_states", failed("merge_state", WRONG_VALUE, "two states merge as one"))),
    "out_of_bounds": grade(lesson("l4_merge_states", failed("merge_state", OUT_OF_BOUNDS, "head size 80"))),
    "race": grade(lesson("l4_merge_states", failed("merge_state", RACE, "head size 80", others=1))),
    "compile_error": grade(lesson("l4_merge_states", failed("merge_state", COMPILE, "compiles for a GPU"))),
    "time_out": grade(lesson("l4_merge_states", failed("merge_states", TIMEOUT, "any number of states", 1, 11))),
    "crash": grade(lesson("l4_merge_states", failed("merge_states", CRASH, "any number of states"))),
    "syntax_error": grade(
        lesson("l1_online_softmax"),
        lesson("l4_merge_states", *map(stopped, NAMES["l4_merge_states"][1]), problem=SYNTAX),
    ),
    "missing_file": grade(
        lesson("l4_merge_states", *map(gone, NAMES["l4_merge_states"][1]), problem=MISSING), seed=None
    ),
    "missing_function": grade(
        lesson("l4_merge_states", passed("merge_state"), gone("merge_states"))
    ),
    "hostile_text": grade(lesson("l4_merge_states", failed("merge_state", HOSTILE, "two states merge as one"))),
    "all_passed": grade(
        lesson("l4_merge_states", passed("merge_state", kernels=KERNELS),
               *map(passed, NAMES["l4_merge_states"][1][1:])),
    ),
    "level_value": grade(lesson("l4_merge_states", failed("merge_state", WRONG_VALUE, "two states")), level="value"),
    "on_a_gpu": grade(
        lesson("l4_merge_states", *map(passed, NAMES["l4_merge_states"][1])),
        target="/home/student/a/very/long/path/to/the/course/folder/handed-in", device="NVIDIA H200",
        instruments="off: on a GPU only guard zones and poisoned outputs remain",
    ),
    "grader_failed": grade(lesson("l4_merge_states"), grader_error="the worker could not be started: no memory"),
}  # fmt: skip
