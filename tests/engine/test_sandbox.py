"""Whatever graded code does, the parent gets a Reply, nothing of it lives on, and the next call has a fresh worker."""

import contextlib
import os
import py_compile
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from drills.errors import GraderFailed
from drills.sandbox import unreachable
from drills.sandbox.client import Call, Worker
from drills.sandbox.isolation import Isolation
from drills.sandbox.limits import Caps, family
from drills.sandbox.nursery import ROOT, Nursery

FILE = Path(__file__).with_name("misbehaving.py")


@pytest.fixture(scope="module")
def nursery():
    root = Nursery()
    yield root.branch("cpu")
    root.close()


@pytest.fixture
def worker(nursery):
    caps = Caps(memory=256 << 20, processes=12, file=8 << 20)
    worker = Worker(nursery, FILE, "cpu", 5.0, caps)
    yield worker
    worker.close()


def call(worker, name, *args, **options):
    return worker.call(Call(name, args, **options))


def survivors(nursery):
    """Processes below the two zygotes, zombies aside, once there was time to bury the last worker."""
    for _ in range(100):
        alive = [pid for pid in family(nursery.root.pid)[2:] if state(pid) not in "Z-"]
        if not alive:
            return []
        time.sleep(0.01)
    return alive


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "-"


def test_arguments_and_results_are_the_same(worker):
    x = torch.arange(12.0).reshape(3, 4).t()
    mask = torch.ones(1, dtype=torch.bool).expand(5)
    got = call(worker, "echo", x, [mask, None, 2.5], torch.empty(0, 2)).results
    assert torch.equal(got[0], x) and got[0].stride() == x.stride()
    assert torch.equal(got[1][0], mask) and got[1][1:] == [None, 2.5]
    assert got[2].shape == (0, 2)


def test_the_parents_arguments_stay_as_they_are_and_changed_ones_come_back(worker):
    x = torch.zeros(3)
    reply = call(worker, "change", x, names=("x",), inplace=(0,))
    assert x.tolist() == [0, 0, 0]
    assert reply.results is None and reply.after[0].tolist() == [1, 1, 1]


def test_what_the_caller_does_meanwhile_is_no_time_of_the_call(worker):
    """Done once the call is under way; a call that never ends still gets all of its time, and no more."""
    done = []

    def work():
        time.sleep(0.6)
        done.append(worker.child.ended())

    worker.timeout = 0.4
    assert worker.call(Call("count", ()), work).results == 1 and done == [None]
    begun = time.monotonic()
    assert worker.call(Call("loop", ()), work).death.kind == "timeout" and len(done) == 2
    assert time.monotonic() - begun >= 1.0


def test_one_process_serves_many_calls(worker):
    assert [call(worker, "count").results for _ in range(3)] == [1, 2, 3]


def test_who_is_dismissed_ends_and_is_replaced_if_there_is_a_call_after_all(worker, nursery):
    call(worker, "count")
    worker.dismiss()
    assert call(worker, "count").results == 1
    worker.dismiss()
    worker.close()
    assert survivors(nursery) == []


DEATHS = {
    "leave": ((0,), "exit", "your code ended the process (exit code 0) before it answered: remove the exit"),
    "read_wildly": ((), "crash", "your kernel read outside a tensor and the process died (SIGSEGV)"),
    "loop": ((), "timeout", "no answer in 0.4 s"),
    "sleep_deaf": ((), "timeout", "no answer in 0.4 s"),
    "flood": ((), "flood", "printed more than 8 MiB in one call: is there a print in a loop?"),
    "flood_raw": ((), "flood", "printed more than 8 MiB in one call: is there a print in a loop?"),
    "hoard": ((), "memory", "the process used more memory than it may and was stopped"),
    "breed": ((), "processes", "the process started more processes than it may and was stopped"),
    "bomb": ((), "processes", "the process started more processes than it may and was stopped"),
    "write_noise": ((), "malformed", "the process sent bytes that are no message in place of an answer"),
    "hang_up": ((), "malformed", "the process closed its connection to the grader"),
    "promise_too_much": ((), "oversized", "the answer is too large: 1073741824 MiB, the limit is 72 MiB"),
    "answer_for_itself": (("",), "malformed", "the process sent what the grader did not write in place of an answer"),
    "trickle": ((), "timeout", "no answer in 0.4 s"),
    "too_large": ((), "oversized", "the answer is too large: a tensor of shape [1099511627776]"),
    "too_deep": ((), "oversized", "the answer is too large: lists nested more than 16 deep"),
}


@pytest.mark.parametrize("name", DEATHS)
def test_each_death_has_its_name_and_the_next_call_a_fresh_worker(worker, nursery, name):
    args, kind, words = DEATHS[name]
    assert call(worker, "count").results == 1
    worker.timeout = 0.4 if kind == "timeout" else 10.0
    death = call(worker, name, *args).death
    assert (death.kind, death.words) == (kind, words)
    assert survivors(nursery) == []
    assert call(worker, "count").results == 1


@pytest.mark.parametrize(
    "name, source",
    {
        "loop": "while True:",
        "loop_in_steps": "while at < 3:",
        "sleep_long": "time.sleep(600)",
        "sleep_deaf": "",
    }.items(),
)
def test_no_answer_in_time_and_the_line_is_named(worker, name, source):
    worker.timeout = 0.4
    reply = call(worker, name)
    assert (reply.death.words, reply.death.source) == ("no answer in 0.4 s", source)
    assert reply.printed == ("tired\n" if name == "sleep_long" else "")
    lines = FILE.read_text().split("\n")
    assert reply.death.line is None if not source else lines[reply.death.line - 1].strip() == source


def test_code_that_cannot_be_shut_in_is_the_graders_fault_and_does_not_run(monkeypatch, tmp_path):
    """On Python 3.10 it was said to have ended its process, before any of it had run."""
    ran = tmp_path / "ran"
    file = tmp_path / "answer.py"
    file.write_text(f"open({str(ran)!r}, 'w')\n")
    monkeypatch.setattr(unreachable, "close", lambda: 1 / 0)
    nursery = Nursery()
    try:
        with pytest.raises(GraderFailed, match="no code can be shut in here: ZeroDivisionError"):
            Worker(nursery.branch("cpu"), file, "cpu", 5.0).load()
    finally:
        nursery.close()
    assert not ran.exists()


def test_the_worker_is_there_without_triton_which_decides_at_import_whether_it_interprets():
    code = "import sys, drills.sandbox.worker, drills.sandbox.zygote; sys.exit('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGKILL", "SIGTERM"])
def test_signals_are_named(worker, name):
    death = call(worker, "die", name).death
    assert (death.kind, death.signal) == ("crash", name) and name in death.words


def test_a_file_may_not_grow_without_end(worker, tmp_path):
    reply = call(worker, "write_file", str(tmp_path / "big"))
    assert reply.death or reply.raised.type == "OSError"
    assert (tmp_path / "big").stat().st_size <= 8 << 20


@pytest.mark.parametrize("name", ["haunt", "haunt_and_answer"])
def test_no_descendant_lives_longer_than_its_worker(worker, nursery, tmp_path, name):
    call(worker, name, str(tmp_path / "pid"))
    worker.close()
    pid = int((tmp_path / "pid").read_text() or 0)
    assert pid and state(pid) in "Z-"
    assert survivors(nursery) == []


def test_nothing_outlives_the_parent(tmp_path):
    """Not even if the parent is killed: the kernel ends the zygote, and with it what it forked."""
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            nursery = Nursery()
            worker = Worker(nursery.branch("cpu"), FILE, "cpu", 60.0)
            call(worker, "haunt_and_answer", str(tmp_path / "pid"))
            os.write(writing, " ".join(map(str, family(nursery.pid))).encode())
            time.sleep(600)
        finally:
            os._exit(1)
    pids = [int(pid) for pid in os.read(reading, 1000).split()]
    os.kill(parent, 9)
    os.waitpid(parent, 0)
    assert len(pids) >= 4
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(state(pid) not in "Z-" for pid in pids):
        time.sleep(0.01)
    assert [pid for pid in pids if state(pid) not in "Z-"] == []


def test_a_killed_zygote_is_replaced():
    nursery = Nursery()
    worker = Worker(nursery.branch("cpu"), FILE, "cpu", 5.0)
    assert call(worker, "count").results == 1
    pids = family(nursery.pid)
    os.kill(nursery.pid, 9)
    while any(state(pid) not in "Z-" for pid in pids):
        time.sleep(0.01)
    assert call(worker, "count").results == 1
    assert call(worker, "count").results == 2
    worker.close()
    nursery.close()


@pytest.mark.parametrize("program", ["false", "sleep 0.3"])
def test_a_zygote_that_never_starts_can_be_closed(monkeypatch, program):
    """It may go before it is asked for anything, or with what it was asked unread."""
    monkeypatch.setattr(Isolation, "command", lambda self, arguments: program.split())
    root = Nursery(Isolation("bwrap"))
    with contextlib.suppress(BrokenPipeError):
        root.branch("cpu")
    root.close()


def test_graded_code_that_kills_the_zygote_ends_with_it():
    root = Nursery()
    worker = Worker(root.branch("cpu"), FILE, "cpu", 5.0)
    death = call(worker, "kill_the_zygote").death
    assert (death.kind, death.signal) == ("crash", "SIGKILL")
    assert call(worker, "count").results == 1
    worker.close()
    root.close()


def test_prints_are_kept_clean_and_short(worker):
    text = call(worker, "say", "\x1b[31mred\x1b[0m \x07bell \u202egnp\x1b]0;title\x07").printed
    assert sorted(text.split("\n")) == ["", "red bell gnp", "to stderr"]
    assert len(call(worker, "say_much").printed) < 70_000
    assert call(worker, "nothing").printed == ""


def test_exceptions_show_the_learners_own_line(worker):
    raised = call(worker, "fail", 1).raised
    line = 1 + FILE.read_text().split("\n").index('    raise ValueError("bad \\x1b[31mx\\x1b[0m")')
    assert (raised.type, raised.message, raised.line) == ("ValueError", "bad x", line)
    assert raised.source.startswith("raise ValueError(")


@pytest.mark.parametrize("what, meant", [("a name", "block"), ("a function", "zeros"), ("an attribute", "shape")])
def test_a_name_that_nothing_has_comes_with_the_one_that_is_most_like_it(worker, what, meant):
    assert call(worker, "mistype", what).raised.message.endswith(f". Did you mean: '{meant}'?")


@pytest.mark.parametrize(
    "name, kind",
    [
        ("quit_politely", "SystemExit"),
        ("interrupt", "KeyboardInterrupt"),
        ("recurse", "RecursionError"),
        ("fail_nastily", "Nasty"),
        ("no_such_function", "AttributeError"),
        ("fail", "TypeError"),
    ],
)
def test_any_exception_is_an_answer_and_the_worker_goes_on(worker, name, kind):
    call(worker, "count")
    assert call(worker, name).raised.type == kind
    assert call(worker, "count").results == 2


def test_a_breakpoint_left_in_says_how_to_use_it(worker):
    assert "--debug" in call(worker, "stop_here").raised.message
    assert call(worker, "count").results == 1


def test_the_worker_loads_no_oracle_and_no_test_and_sees_no_secret_variable(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("drills.lessons.l", "test_l"))]:
        monkeypatch.delitem(sys.modules, name)
    nursery = Nursery()
    worker = Worker(nursery.branch("cpu"), FILE, "cpu", 5.0)
    held, variables, sockets = call(worker, "see").results
    worker.close()
    nursery.close()
    assert held == []
    assert sockets == 1
    assert not [name for name in variables if "TOKEN" in name or "PYTEST" in name]


LOADING = {
    "raises": ("x = 1\nraise ValueError('no')\n", "ValueError", 2),
    "imports what is not there": ("import no_such_module\n", "ModuleNotFoundError", 1),
    "does not parse": ("def f(:\n", "SyntaxError", 1),
    "leaves": ("import sys\nsys.exit()\n", "SystemExit", 2),
}


@pytest.mark.parametrize("case", LOADING.values(), ids=LOADING)
def test_a_file_that_does_not_load_says_why(nursery, tmp_path, case):
    text, kind, line = case
    (tmp_path / "unloadable.py").write_text(text)
    worker = Worker(nursery, tmp_path / "unloadable.py", "cpu", 5.0)
    raised = worker.load().raised
    assert (raised.type, raised.line) == (kind, line)
    assert call(worker, "f").raised == raised
    worker.close()


def test_the_source_is_run_and_not_compiled_code_beside_it(nursery, tmp_path):
    file = tmp_path / "graded.py"
    file.write_text("def f(): return 'compiled'\n")
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    file.write_text("def f(): return 'source'\n")
    worker = Worker(nursery, file, "cpu", 5.0)
    assert call(worker, "f").results == "source"
    worker.close()


ENDINGS = [
    ("while True: pass", "timeout"),
    ("import os; os._exit(0)", "exit"),
    ("while True: print('x' * 9999)", "flood"),
]


@pytest.mark.parametrize("text, kind", ENDINGS, ids=[kind for _, kind in ENDINGS])
def test_a_file_that_ends_the_worker_while_it_loads(nursery, tmp_path, text, kind):
    (tmp_path / "unloadable.py").write_text(text)
    worker = Worker(nursery, tmp_path / "unloadable.py", "cpu", 0.5)
    assert worker.load().death.kind == kind
    worker.close()
