"""From a request to a grade: what counts as passed, failed, not started and not run."""

import gc
import inspect
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_lesson

from drills import graded_tests, session
from drills.report.model import LEVELS
from drills.report.verdict import exit_code
from drills.sandbox import later
from drills.sandbox.isolation import Isolation
from drills.sandbox.nursery import Nursery

LOOP = ("    y = torch.empty_like(x)\n", "    while True: pass\n")
SHIFTED = ("2 * tl.load", "1 + 2 * tl.load")


@pytest.fixture(scope="module")
def nursery():
    session.prepare()
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    return tiny_lesson.build(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def grade(entry, nursery, tmp_path):
    """Grades the solution with some replacements; exercises and other parts of the request by name."""

    def grade(*changes, exercises=(), text=None, lesson=entry, **request):
        folder = tmp_path / "answers"
        if text is None:
            tiny_lesson.answer(lesson, folder, *changes)
        else:
            tiny_lesson.written(lesson, folder, text)
        request = {"device": "cpu", "timeout": 5.0, **request}
        chosen = (tiny_lesson.selection(lesson, *exercises),)
        return session.grade(session.Request(chosen, folder, **request), nursery)

    return grade


def states(grade):
    return [exercise.state for lesson in grade.lessons for exercise in lesson.exercises]


def outcomes(grade, exercise=0):
    return [test.outcome for test in grade.lessons[0].exercises[exercise].tests]


def failure(grade, exercise=0):
    return next(test.failure for test in grade.lessons[0].exercises[exercise].tests if test.failure)


def test_no_garbage_is_sought_among_what_torch_is_made_of():
    text = "import gc; from drills import session\nwith session.loading(): import torch; print(gc.isenabled())\n"
    text += "print(gc.isenabled(), gc.get_freeze_count() > 100_000, sum(one['collections'] for one in gc.get_stats()))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True, check=True)
    ends, frozen, collections = done.stdout.split()[1:]
    assert done.stdout.split()[0] == "False" and (ends, frozen) == ("True", "True") and int(collections) < 100


def printed_with_torch(text):
    """What this prints in a process that has loaded torch as grading does."""
    before = "import sys; from drills import session\nwith session.loading(): import torch\n"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", before + text], cwd=root, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(
    not version("torch").startswith(later.KNOWN), reason="torch is of a version that loads them at once"
)
def test_parts_of_torch_wait_until_more_of_it_is_loaded():
    text = "print('torch._meta_registrations' in sys.modules, torch.Generator().manual_seed(3).initial_seed())\n"
    text += "import torch._inductor.decomposition\n"
    text += "print('torch._meta_registrations' in sys.modules, 'export' in vars(torch))"
    assert printed_with_torch(text) == ["False", "3", "True", "True"]


@pytest.mark.parametrize("part", ["export", "_meta_registrations", "_prims", "_refs", "_decomp"])
def test_a_part_of_torch_is_whole_by_import_and_by_name(part):
    text = f"module = torch.{part}; print(module.__name__, module.__spec__.name, type(module.__spec__.loader).__name__)"
    whole = [f"torch.{part}", f"torch.{part}", "SourceFileLoader"]
    assert printed_with_torch(f"import torch.{part}\n{text}") == printed_with_torch(text) == whole


def test_operations_without_values_are_there_once_asked_for():
    text = "import torch.export\nx = torch.empty(2, 3, device='meta'); print(*torch.logsumexp(x, 1).shape)\n"
    text += "print(torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),)).graph is not None)"
    assert printed_with_torch(text) == ["2", "True"]


def test_a_frame_s_module_is_at_hand_while_torch_is_loaded():
    searching, frame = inspect.getmodule, inspect.currentframe()
    with later.frames_at_hand():
        assert inspect.getmodule is not searching
        assert inspect.getmodule(frame).__name__ == __name__
        assert inspect.getmodule(Path.mkdir) is sys.modules[Path.mkdir.__module__]
        assert inspect.getmodule(3) is None
    assert inspect.getmodule is searching


def test_a_process_that_has_torch_keeps_its_collector(grade):
    before = gc.get_freeze_count()
    with session.loading():
        assert gc.isenabled()
    assert gc.get_freeze_count() == before


def test_the_solution_passes_whole(grade):
    got = grade()
    assert (got.grader_error, states(got), exit_code(got)) == ("", ["passed", "passed"], 0)
    assert len(got.lessons[0].exercises[0].tests) == 6
    assert all(level.state != "failed" for one in got.lessons[0].exercises for level in one.levels.values())
    assert got.lessons[0].exercises[0].traffic == 1.0
    assert got.seed is not None and got.device == "cpu" and got.isolation == "process"


def test_two_repositories_graded_in_one_process_have_their_own_tests(grade, tmp_path):
    other = tiny_lesson.build(tmp_path / "other")
    added = '\n\n@pytest.mark.graded("double", "value")\ndef test_of_the_other_one(drill):\n    pass\n'
    other.tests.write_text(other.tests.read_text() + added)
    counts = [len(outcomes(grade(**which))) for which in ({}, {"lesson": other}, {})]
    assert counts == [counts[0], counts[0] + 1, counts[0]]


def test_titles_are_sentences(grade):
    titles = [test.title for test in grade(exercises=("double",)).lessons[0].exercises[0].tests]
    assert titles[:4] == [
        "twice the input, n = 5",
        "twice the input, n = 16",
        "twice the input, n = 33",
        "an empty input gives an empty result",
    ]


@pytest.mark.parametrize(
    "name, parameters, words",
    [
        ("test_no_key", {}, "no key"),
        ("test_rows[float16-lse2]", {"dtype": 0, "function": "lse2"}, "rows, float16, lse2"),
        ("test_parts[0-2]", {"L": 0, "num_splits": 2}, "parts, L = 0, num_splits = 2"),
        ("test_far[-2^100-lse]", {"top": 1.0, "function": "lse"}, "far, top = -2^100, lse"),
        ("test_shift[-60000.0--0.5]", {"shift": -60000.0, "by": -0.5}, "shift, shift = -60000.0, by = -0.5"),
        ("test_pages[3-lengths1]", {"page_size": 3, "lengths": (38,)}, "pages, page_size = 3, lengths = (38,)"),
        ("test_pages[no-rows]", {"indptr": [0]}, "pages, no, rows"),
    ],
)
def test_a_test_s_values_are_named_in_its_title(name, parameters, words):
    item = SimpleNamespace(name=name, **({"callspec": SimpleNamespace(params=parameters)} if parameters else {}))
    assert graded_tests.title(item) == words


def test_one_exercise_alone(grade):
    got = grade(SHIFTED, exercises=("negate_in_place",))
    assert [exercise.name for exercise in got.lessons[0].exercises] == ["negate_in_place"]
    assert states(got) == ["passed"]


def test_an_untouched_stub_is_not_started_and_runs_nothing(grade, entry):
    got = grade(text=entry.stub)
    assert states(got) == ["not started", "not started"] and exit_code(got) == 5
    assert outcomes(got) == [] and got.seed is None


def test_what_graded_code_prints_is_kept_with_its_test(grade):
    printing = ("    y = torch.empty_like(x)\n", "    print('n is', len(x))\n    y = torch.empty_like(x)\n")
    tests = grade(printing, exercises=("double",)).lessons[0].exercises[0].tests
    assert [test.printed for test in tests[:2]] == ["n is 5\n", "n is 16\n"]


def test_what_is_begun_is_graded_and_the_rest_is_not_started(grade, entry):
    half = tiny_lesson.SOLUTION.split("@triton.jit\ndef negate")[0]
    got = grade(text=half + "\ndef negate_in_place(x):\n    raise NotImplementedError('negate_in_place: your turn')\n")
    assert states(got) == ["passed", "not started"] and exit_code(got) == 1


def test_a_missing_function_is_missing(grade):
    got = grade(("def negate_in_place", "def negate"))
    assert states(got) == ["passed", "missing"] and exit_code(got) == 1


@pytest.mark.parametrize(
    "text, kind, line",
    [
        ("def double(x:\n    pass\n", "syntax_error", 1),
        ("import no_such_thing\n" + tiny_lesson.SOLUTION, "exception", 1),
        (tiny_lesson.SOLUTION + "raise SystemExit\n", "exception", len(tiny_lesson.SOLUTION.split("\n"))),
        (tiny_lesson.SOLUTION + "import os; os._exit(0)\n", "exit", None),
    ],
)
def test_a_file_that_does_not_load_is_one_problem(grade, text, kind, line):
    got = grade(text=text)
    assert (got.lessons[0].problem.kind, got.lessons[0].problem.line) == (kind, line)
    assert states(got) == ["failed", "failed"] and exit_code(got) == 1 and not got.grader_error


def test_a_wrong_value_says_what_came_back(grade):
    got = grade(SHIFTED)
    assert states(got) == ["failed", "passed"] and exit_code(got) == 1
    assert (failure(got).kind, failure(got).level) == ("wrong_value", "value")
    assert failure(got).called.startswith("double(x[5]") and failure(got).got and failure(got).expected
    assert got.lessons[0].exercises[0].levels["value"].state == "failed"


@pytest.mark.parametrize("change, mistake", [("3 * tl.load", "tripled"), ("1.5 * tl.load", "")])
def test_a_known_mistake_is_named_and_an_unknown_one_is_not(grade, change, mistake):
    assert failure(grade(("2 * tl.load", change))).mistake == mistake


def test_two_time_outs_and_the_rest_of_the_exercise_is_not_run(grade):
    got = grade(LOOP, timeout=0.4)
    assert outcomes(got) == ["failed", "failed", "not run", "not run", "not run", "not run"]
    assert failure(got).got == "no answer in 0.4 s"
    assert states(got) == ["failed", "passed"]
    skipped = got.lessons[0].exercises[0].tests[2]
    assert "no answer in time" in skipped.failure.got


def test_four_ends_of_the_process_and_the_rest_of_the_exercise_is_not_run(grade):
    got = grade(("    y = torch.empty_like(x)\n", "    import os; os._exit(3)\n    y = x\n"))
    assert outcomes(got) == ["failed"] * 4 + ["not run"] * 2
    assert states(got) == ["failed", "passed"]
    assert got.lessons[0].exercises[0].tests[4].failure.got == (
        "not run: the process that runs this exercise has ended 4 times"
    )


def test_looking_for_a_cause_is_not_waited_for_without_end(grade):
    """Three times x on every size that is tested, and without end on the fresh cases that a diagnosis draws."""
    change = ("    y = torch.empty_like(x)\n", "    y = torch.empty_like(x)\n    while len(x) == 9: pass\n")
    got = grade(("2 * tl.load", "3 * tl.load"), change, exercises=("double",), timeout=0.4)
    failures = [test.failure for test in got.lessons[0].exercises[0].tests[:3]]
    assert [one.kind for one in failures] == ["wrong_value"] * 3
    assert [one.mistake for one in failures[:2]] == ["", "tripled"]


@pytest.mark.parametrize(
    "line, kind, level",
    [
        ("import os; os._exit(0)", "exit", "value"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crash", "memory"),
        ("raise RuntimeError('mine')", "exception", "value"),
        ("import pytest; pytest.skip('please')", "exception", "value"),
        ("return None", "wrong_form", "value"),
        ("return torch.zeros(len(x), 1)", "wrong_form", "value"),
        ("return 2 * x", "not_triton", "value"),
        ("return float('nan') * x", "not_triton", "value"),
    ],
)
def test_what_goes_wrong_in_a_call_has_its_kind_and_level(grade, line, kind, level):
    got = grade(("    y = torch.empty_like(x)\n", f"    {line}\n    y = torch.empty_like(x)\n"), exercises=("double",))
    assert states(got) == ["failed"] and not got.grader_error
    assert (failure(got).kind, failure(got).level) == (kind, level)
    assert "passed" not in outcomes(got)[:5]


def test_a_memory_fault_counts_at_its_level_and_blocks_the_others(grade):
    got = grade(("tl.load(x_ptr + i, mask=i < N)", "tl.load(x_ptr + i)"), exercises=("double",))
    levels = got.lessons[0].exercises[0].levels
    assert (failure(got).kind, failure(got).level) == ("out_of_bounds", "memory")
    assert levels["memory"].state == "failed" and levels["value"].state == "blocked"


def test_masked_off_lanes_are_the_cause_even_where_zeros_in_them_are_wrong_too(grade):
    loaded = "tl.load(x_ptr + i, mask=i < N)"
    counted = f"2 * {loaded} + tl.sum(tl.where(i < N, 0.0, 1.0 + {loaded}), axis=0)"
    got = grade((f"2 * {loaded}", counted), exercises=("double",))
    assert (failure(got).kind, failure(got).level) == ("masked_lane", "memory")


def test_reading_twice_fails_traffic_alone(grade):
    twice = "tl.load(x_ptr + i, mask=i < N) + tl.load(x_ptr + i, mask=i < N)"
    got = grade(("2 * tl.load(x_ptr + i, mask=i < N)", twice), exercises=("double",))
    levels = {name: level.state for name, level in got.lessons[0].exercises[0].levels.items()}
    assert (levels["value"], levels["edge"], levels["memory"], levels["traffic"]) == ("passed",) * 3 + ("failed",)
    assert got.lessons[0].exercises[0].levels["traffic"].note == "1.50x"


def test_an_input_that_may_not_change_is_watched(grade):
    got = grade(("y = torch.empty_like(x)", "y = x"), exercises=("double",))
    assert states(got) == ["failed"] and failure(got).level == "memory"


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "compile"])
def test_a_level_alone(grade, level):
    got = grade(SHIFTED, level=level)
    assert not got.grader_error and got.level == level
    expected = {"value": ["failed", "passed"], "edge": ["failed", "passed"], "traffic": ["passed"]}
    assert states(got) == expected.get(level, ["failed", "passed"])
    for exercise in got.lessons[0].exercises:
        assert {name for name, one in exercise.levels.items() if one.state != "off"} == {level}


def test_a_seed_repeats_the_inputs(grade):
    first, second, other = (failure(grade(SHIFTED, seed=seed)).got for seed in (7, 7, 8))
    assert first == second != other


def test_a_secret_seed_is_asked_for_after_the_fork(grade):
    assert grade(seed=lambda: 99).seed == 99


def test_progress_is_told_before_each_test(grade):
    seen = []
    grade(exercises=("double",), progress=seen.append)
    assert [one.done for one in seen] == list(range(6)) and seen[0].total == 6
    assert (seen[0].lesson, seen[0].exercise, seen[0].title) == ("l91_tiny", "double", "twice the input, n = 5")


def test_the_users_pytest_settings_do_not_matter(grade, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--maxfail=1 -k nothing --no-such-option")
    assert states(grade()) == ["passed", "passed"]
    assert os.environ["PYTEST_ADDOPTS"].startswith("--maxfail")


def test_debug_mode_runs_graded_code_here(grade, capfd, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    got = grade(("    y = torch.empty_like(x)\n", "    print('seen here')\n    y = torch.empty_like(x)\n"), debug=True)
    assert states(got) == ["passed", "passed"]
    assert got.lessons[0].exercises[0].levels["compile"].state == "off"
    assert "seen here" in capfd.readouterr().out


def lesson_with(tmp_path, number, tests):
    return tiny_lesson.build(tmp_path, f"l{number}_odd", tiny_lesson.TESTS + tests)


def test_a_skip_or_an_expected_failure_is_never_a_pass(grade, tmp_path):
    marks = ["skip", "xfail", "skipif(True, reason='no')"]
    extra = "".join(
        f"\n\n@pytest.mark.{mark}\n@pytest.mark.graded('double', 'value')\ndef test_odd_{index}(drill):\n    pass\n"
        for index, mark in enumerate(marks)
    )
    extra += "\n\n@pytest.mark.graded('double', 'value')\ndef test_odd_3(drill):\n    pytest.skip('no')\n"
    got = grade(lesson=lesson_with(tmp_path, 92, extra), exercises=("double",))
    assert states(got) == ["failed"]
    assert outcomes(got).count("not run") == 4 and "failed" not in outcomes(got)


@pytest.mark.parametrize(
    "number, extra, words",
    [
        (93, "\n\ndef test_of_nothing(drill):\n    pass\n", "does not say which exercise"),
        (94, "\n\n@pytest.mark.graded('double', 'value')\ndef test_odd(drill):\n    1 / 0\n", "ZeroDivisionError"),
        (95, "\n\nraise ImportError('gone')\n", "gone"),
    ],
)
def test_a_broken_test_file_is_the_graders_fault(grade, tmp_path, number, extra, words):
    got = grade(lesson=lesson_with(tmp_path, number, extra))
    assert words in got.grader_error and exit_code(got) == 3


def test_an_exercise_without_tests_is_the_graders_fault(grade, tmp_path):
    entry = tiny_lesson.build(tmp_path, "l96_bare", tiny_lesson.TESTS.split('@pytest.mark.graded("negate')[0])
    got = grade(lesson=entry)
    assert "no test grades negate_in_place" in got.grader_error and exit_code(got) == 3


def test_a_gate_that_is_killed_leaves_no_folder_behind(entry, tmp_path, monkeypatch):
    """With no isolation a file may kill the process that would have removed the folder, and a cap may at any level."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "drills-gate-of-another-run").mkdir()
    monkeypatch.setenv("TMPDIR", str(private))
    monkeypatch.setattr(tempfile, "tempdir", None)
    kill = "import os\nif 'TRITON_INTERPRET' not in os.environ:\n    for pid in (os.getppid(), os.getpid()):\n"
    tiny_lesson.written(entry, tmp_path / "answers", f"{kill}        os.kill(pid, 9)\n{tiny_lesson.SOLUTION}")
    chosen = (tiny_lesson.selection(entry),)
    process = Isolation.named("process")
    got = session.grade(session.Request(chosen, tmp_path / "answers", device="cpu", isolation=process))
    assert states(got) == ["failed", "failed"]
    assert [path.name for path in private.iterdir()] == ["drills-gate-of-another-run"]
