"""What each level of isolation promises, tried out from inside; a level that this machine lacks is skipped, and why."""

import os
import socket
import time
from pathlib import Path

import pytest
import torch

from drills.catalog import ROOT
from drills.errors import NoIsolation
from drills.sandbox import isolation
from drills.sandbox.client import Call, Worker
from drills.sandbox.isolation import Isolation
from drills.sandbox.limits import Caps, family
from drills.sandbox.nursery import Nursery

FILE = Path(__file__).with_name("prying.py")
REFUSED = {"PermissionError", "FileNotFoundError", "ModuleNotFoundError", "OSError"}


def needs(level):
    found = isolation.probe_one(level)
    if not found.holds:
        pytest.skip(f"{level}: {found.reason}")


@pytest.fixture(scope="module", params=isolation.STRONG)
def nursery(request):
    needs(request.param)
    os.environ["SECRET_TOKEN"] = "t0ps3cret"
    root = Nursery(Isolation.named(request.param))
    yield root
    root.close()
    del os.environ["SECRET_TOKEN"]


@pytest.fixture
def worker(nursery):
    caps = Caps(memory=256 << 20, processes=12, threads=40, file=8 << 20, written=16 << 20)
    worker = Worker(nursery.branch("cpu"), FILE, "cpu", 10.0, caps)
    yield worker
    worker.close()


def call(worker, name, *args):
    reply = worker.call(Call(name, args))
    assert reply.death is None and reply.raised is None, (reply.death, reply.raised)
    return reply.results


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_it_works_at_all(worker):
    assert call(worker, "double", torch.ones(2)).tolist() == [2, 2]


def test_torch_finds_out_what_the_processor_can_do(worker):
    assert call(worker, "convert", torch.ones(2, 3)).tolist() == [[3, 3], [3, 3]]


def test_answers_tests_pages_and_the_home_folder_are_not_visible(worker, tmp_path):
    (tmp_path / "other.py").write_text("# a neighbor's submission")
    files = [
        *(ROOT / "solutions").glob("l*.py"),
        *(ROOT / "tests").glob("*.py"),
        *(ROOT / "content").glob("*.md"),
        *(ROOT / "drills" / "lessons").glob("*.py"),
        *(ROOT / "drills" / "judge").glob("*.py"),
        *(ROOT / "mine").glob("*.py"),
        ROOT / ".git" / "HEAD",
        FILE,
        tmp_path / "other.py",
        Path("/etc/passwd"),
        Path("/etc/hostname"),
    ]
    files = [str(path) for path in files if path.exists()]
    assert len(files) > 30
    assert set(call(worker, "read", *files)) <= REFUSED
    folders = [str(path) for path in (ROOT, ROOT / "solutions", ROOT / "tests", tmp_path, "/home", "/root")]
    assert set(call(worker, "listed", *folders)) <= REFUSED


@pytest.mark.parametrize("name", ["solutions.l4_merge_states", "drills.lessons.oracle", "tests.test_l4_merge_states"])
def test_answers_cannot_be_imported(worker, name):
    assert worker.call(Call("imported", (name,))).raised.type in REFUSED


def test_nothing_can_be_written(worker, tmp_path):
    there = tmp_path / "there"
    there.write_text("as it was")
    places = [there, tmp_path / "new", ROOT / "drills" / "new.py", FILE, Path.home() / "new"]
    places += ["/tmp/new", "/dev/shm/new", "/new"]
    assert set(call(worker, "write", *map(str, places))) <= REFUSED
    assert set(call(worker, "change", str(there))) <= REFUSED
    assert there.read_text() == "as it was" and list(tmp_path.iterdir()) == [there]
    assert set(call(worker, "change", str(ROOT / "drills" / "sandbox" / "wire.py"))) <= REFUSED


def test_there_is_no_network(worker, tmp_path):
    unix = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(unix)
        local.listen()
        assert set(call(worker, "network", server.getsockname()[1], unix)) <= REFUSED


def test_no_other_process_can_be_signalled_traced_or_read(worker, nursery):
    others = [os.getpid(), *family(nursery.pid)]
    assert "allowed" not in call(worker, "signals", *others)
    assert "allowed" not in call(worker, "memory_of_others", *others)
    assert call(worker, "trace_parent") == -1


def test_dangerous_system_calls_are_refused(worker):
    assert call(worker, "calls") == {}


def test_no_process_can_be_started_but_threads_can(worker):
    assert set(call(worker, "processes")) == {"PermissionError"}
    assert call(worker, "threads") == [1]


def test_the_graders_environment_and_command_line_are_not_there(worker):
    names, raw = call(worker, "environment")
    assert "SECRET_TOKEN" not in names and "t0ps3cret" not in raw
    assert "pytest" not in call(worker, "first_words")


def test_under_bubblewrap_there_are_no_other_processes_to_see(worker, nursery):
    seen = call(worker, "visible_processes")
    assert os.getpid() not in seen or nursery.isolation.name != "bwrap" or len(seen) < 8


@pytest.mark.parametrize("name, kind", [("crowd", "processes"), ("hoard_fast", "memory"), ("stop_oneself", "timeout")])
def test_caps_hold_also_for_root(worker, name, kind):
    worker.timeout = 1.0 if kind == "timeout" else 20.0
    assert worker.call(Call(name, ())).death.kind == kind
    worker.timeout = 10.0
    assert call(worker, "double", torch.ones(1)).tolist() == [2]


def test_all_processes_are_gone_when_the_nursery_closes(nursery):
    own = Nursery(nursery.isolation)
    worker = Worker(own.branch("cpu"), FILE, "cpu", 10.0)
    call(worker, "double", torch.ones(1))
    pids = family(own.pid)
    own.close()
    assert len(pids) >= 3
    deadline = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(alive, pids))


def test_what_one_submission_wrote_the_next_one_does_not_find(nursery):
    """Not even where there is a place to write: each process has its own, which goes with it."""
    tmp = "/tmp"
    for _ in range(2):
        worker = Worker(nursery.branch("cpu"), FILE, "cpu", 10.0)
        assert call(worker, "persist", tmp) in REFUSED
        worker.close()


def test_a_level_that_is_not_to_be_had_says_why(monkeypatch):
    missing = isolation.Probed("bwrap", False, "bubblewrap is not installed", "install it")
    monkeypatch.setattr(isolation, "probe_one", lambda name: missing)
    with pytest.raises(NoIsolation, match="bubblewrap is not installed.*install it") as caught:
        isolation.chosen("bwrap")
    assert caught.value.code == 4


def test_levels_are_probed_from_the_strictest_down(monkeypatch):
    assert [one.name for one in isolation.probe()] == ["bwrap", "landlock", "process"]
    assert all(one.holds or (one.reason and one.advice) for one in isolation.probe())
    monkeypatch.setattr(isolation, "probe_one", lambda name: isolation.Probed(name, name == "process"))
    assert isolation.best().name == isolation.best_for_learner().name == "process"
    monkeypatch.setattr(isolation, "probe_one", lambda name: isolation.Probed(name, True))
    assert (isolation.best().name, isolation.best_for_learner().name) == ("bwrap", "landlock")


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="no isolation level is called none"):
        Isolation.named("none")
