"""`watch` as a learner has it: what a save leads to, what is not a save, and how it ends."""

import contextlib
import json
import os
import signal
import termios
import time

import pytest
from tiny_lesson import SOLUTION
from watch_run import SHORT, STEM, Watch, build

from drills.stubs import make_stub

NEGATED_TWICE = ("tl.store(at, -tl.load", "tl.store(at, tl.load")
LOOP = ("    y = torch.empty_like(x)\n", "    while True: pass\n")
STUB = make_stub(SOLUTION, "tiny")
DOUBLE = f"{SHORT}.double"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return build(tmp_path_factory.mktemp("watched"))


@pytest.fixture(scope="module")
def log(root):
    """One `watch` without a terminal for all tests that do not end it."""
    watch = Watch(root)
    assert f"mine/{STEM}.py is not begun yet" in watch.until("\n")
    yield watch
    watch.stop()


@pytest.fixture
def watch(log):
    """The same, with the solution saved and graded."""
    solved(log)
    return log


def solved(watch):
    """Saves the solution, as a text that is new, and waits for the verdict on it."""
    watch.write(f"{SOLUTION}\n# {time.monotonic_ns()}\n")
    watch.until("2 of 2 passed\n")


@pytest.fixture
def start(root):
    with contextlib.ExitStack() as stack:

        def start(*words, **how):
            (root / "mine" / f"{STEM}.py").write_text(STUB)
            (root / "mine" / ".progress.json").unlink(missing_ok=True)
            watch = Watch(root, *words, **how)
            stack.callback(watch.stop)
            return watch

        yield start


def test_every_save_is_one_line_and_what_passes_is_kept(watch):
    (watch.root / "mine" / ".progress.json").unlink()
    watch.save(NEGATED_TWICE)
    assert watch.until("1 of 2 passed\n").count("\n") == 1
    watch.save()
    fixed = watch.until("2 of 2 passed\n")
    assert f"{SHORT}.negate_in_place PASS so far" in fixed, "the exercise whose text changed comes first"
    kept = json.loads((watch.root / "mine" / ".progress.json").read_text())["passed"]
    assert sorted(kept) == [DOUBLE, f"{SHORT}.negate_in_place"]


def test_a_failure_names_the_level_and_the_line(watch):
    watch.save(("2 * tl.load", "3 * tl.load"))
    said = watch.until("1 of 2 passed\n")
    assert f"{DOUBLE} FAIL value · " in said
    assert f"mine/{STEM}.py:" in said


def test_saving_twice_and_swap_files_are_one_run(watch):
    watch.save(NEGATED_TWICE)
    watch.until("passed\n")
    watch.mine.with_name(f"{STEM}.py~").write_text("x")
    watch.mine.with_name(".4913").write_text("x")
    text = watch.mine.read_text()
    watch.write(text)
    watch.mine.write_text(text)
    watch.save()
    assert watch.until("2 of 2 passed\n").count("\n") == 1


def test_a_syntax_error_is_said_and_watch_waits(watch):
    watch.write("def double(x:\n    return x\n")
    assert f"mine/{STEM}.py · syntax error, line 1: " in watch.until("\n")
    solved(watch)


def test_a_file_that_goes_and_comes_back(watch):
    away = watch.mine.rename(watch.mine.with_suffix(".away"))
    assert f"there is no mine/{STEM}.py" in watch.until("\n")
    away.rename(watch.mine)
    watch.until("2 of 2 passed\n")


def test_the_whole_folder_may_go_and_come_back(watch):
    (watch.root / "mine").rename(watch.root / "elsewhere")
    watch.until(f"there is no mine/{STEM}.py", "\n")
    (watch.root / "elsewhere").rename(watch.root / "mine")
    watch.until("2 of 2 passed\n")
    watch.save(NEGATED_TWICE)
    watch.until("1 of 2 passed\n")


def test_the_grading_process_may_die_and_is_replaced(watch):
    os.kill(watch.family()[1], signal.SIGKILL)
    watch.save(NEGATED_TWICE)
    watch.until("1 of 2 passed\n")


def test_saving_during_an_endless_loop_starts_anew(start):
    watch = start("--timeout", "3000", terminal=True)
    watch.until("waiting for you to save")
    watch.save(LOOP)
    watch.until("grading double · twice the input, n = 5")
    watch.save()
    watch.until("2 of 2 passed · waiting")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_grades_leaves_nothing_behind(start, number):
    watch = start("--timeout", "3000", terminal=True)
    watch.until("waiting for you to save")
    watch.save(LOOP)
    watch.until("grading double · twice the input, n = 5")
    family = watch.family()
    watch.process.send_signal(number)
    assert watch.ended(family) == 128 + number


def test_ctrl_c_while_torch_is_loaded_is_no_traceback(start):
    watch = start()
    watch.until("\n")  # the process that grades has been started, and needs seconds to load
    family = watch.family()
    assert len(family) > 1
    watch.process.send_signal(signal.SIGINT)
    assert watch.ended(family) == 130


def test_killed_hard_it_takes_all_with_it(start):
    watch = start("--timeout", "3000", terminal=True)
    watch.until("waiting for you to save")
    watch.save(LOOP)
    watch.until("grading double · twice the input, n = 5")
    family = watch.family()
    watch.before = None  # nobody is left to put the terminal back
    watch.process.kill()
    assert watch.ended(family) == -signal.SIGKILL


def test_keys_on_a_terminal_and_the_terminal_as_it_was(start):
    watch = start(terminal=True)
    watch.until("Write", "double", "n next", "waiting for you to save")
    assert not termios.tcgetattr(watch.there)[3] & termios.ICANON
    watch.save(NEGATED_TWICE)
    watch.until("grading the rest", "1 of 2 passed · waiting")
    watch.press("l")
    watch.until("1 of 2 exercises passed", "q quit · any other key: back")
    watch.press("r")
    watch.until("n next", "1 of 2 passed · waiting")
    watch.press("n")
    watch.until("> negate_in_place", "First failure:", "Stuck?")
    watch.press("r")
    watch.until("1 of 2 passed · waiting")
    family = watch.family()
    watch.press("q")
    watch.until("watch ended")
    assert watch.ended(family) == 0


def test_ctrl_c_on_a_terminal_puts_it_back(start):
    watch = start(terminal=True)
    watch.until("waiting for you to save")
    family = watch.family()
    watch.press("\x03")
    watch.until("watch ended")
    assert watch.ended(family) == 130


def test_an_unknown_lesson_is_one_line(start):
    watch = start("l7")
    assert 'grade.py: no lesson "l7"' in watch.until("\n")
    assert watch.ended([]) == 2
