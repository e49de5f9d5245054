"""The compile gate loads graded files too: what their top level may do there, at each level of isolation."""

import mmap
import os
import socket
import tempfile
from pathlib import Path

import pytest
from gate_bench import PLAIN, launch, one

from drills.catalog import ROOT
from drills.instruments.gate import CompileGate
from drills.sandbox import isolation, private
from drills.sandbox.isolation import Isolation
from drills.sandbox.limits import Caps
from drills.sandbox.nursery import Nursery

KERNEL = """
import ctypes, os, socket, sys, tempfile
import triton
import triton.language as tl


@triton.jit
def fill(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, 1.0, mask=i < n)
"""

TRIES = """
DUMPABLE = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)


def attempt(name, action):
    try:
        action()
    except BaseException as error:
        return []
    return [name]


allowed = []
for name in {paths!r}:
    allowed += attempt("read " + name, lambda: open(name).read(1))
for name in {places!r}:
    allowed += attempt("write " + name, lambda: open(name, "w"))
for name in {pids!r}:
    allowed += attempt("signal " + str(name), lambda: os.kill(name, 0))
allowed += attempt("network", lambda: socket.socket())
left, right = socket.socketpair()
allowed += attempt("hand over a descriptor", lambda: socket.send_fds(left, [b"x"], [0]))
libc = ctypes.CDLL(None)
libc.prctl(4, 0, 0, 0, 0)
allowed += ["be undumpable"] if libc.prctl(3, 0, 0, 0, 0) != DUMPABLE else []
own = os.path.join(tempfile.gettempdir(), "mine")
open(own, "w").write("x")
raise RuntimeError("allowed: " + repr(allowed))
"""

ENDLESS = """
for n in range(10**6):
    with open(os.path.join(tempfile.gettempdir(), str(n)), "wb") as file:
        file.write(bytes(1 << 20))
"""

DEEP = """
os.chdir(tempfile.gettempdir())
for n in range(3000):
    os.mkdir("d")
    os.chdir("d")
raise RuntimeError("deep")
"""

LOCKED = """
folder = os.path.join(tempfile.gettempdir(), "d")
os.mkdir(folder, 0o300)
open(os.path.join(folder, "f"), "w").close()
raise RuntimeError("deep")
"""


def test_files_that_no_folder_shows_are_counted_of_those_who_hold_them(tmp_path):
    with open(tmp_path / "open", "w+b") as held, open(tmp_path / "mapped", "w+b") as other:
        held.write(bytes(1 << 20))
        other.write(bytes(2 << 20))
        held.flush()
        other.flush()
        view = mmap.mmap(other.fileno(), 0)
        assert private.unlisted(str(tmp_path), [os.getpid()], 1 << 40) == 0
        (tmp_path / "open").unlink()
        (tmp_path / "mapped").unlink()
        other.close()
        assert private.unlisted(str(tmp_path), [os.getpid()], 1 << 40) == 3 << 20
        assert private.unlisted(str(tmp_path), [1 << 22], 1 << 40) == 0  # no such process
        view.close()


@pytest.fixture(scope="module", params=isolation.STRONG)
def nursery(request):
    found = isolation.probe_one(request.param)
    if not found.holds:
        pytest.skip(f"{request.param}: {found.reason}")
    root = Nursery(Isolation.named(request.param))
    yield root
    root.close()


def report(nursery, file, caps=None):
    def start():
        here, there = socket.socketpair()
        with there:
            nursery.branch("compile").fork("gate", {}, caps or Caps(memory=4 << 30), [there])
        return here

    gate = CompileGate(start)
    found = one(gate, file, launch("fill", file, PLAIN), timeout=60.0)
    gate.close()
    return found[0]


def test_a_kernel_compiles(nursery, tmp_path):
    (tmp_path / "graded.py").write_text(KERNEL)
    found = report(nursery, tmp_path / "graded.py")
    assert found.ok, found.error


def test_the_top_level_sees_and_changes_nothing(nursery, tmp_path):
    paths = [str(ROOT / "solutions" / "l4_merge_states.py"), str(ROOT / "drills" / "catalog.py"), "/etc/passwd"]
    places = [str(tmp_path / "new"), "/tmp/new", str(ROOT / ".drills" / "gate" / "new.json")]
    tries = TRIES.format(paths=paths, places=places, pids=[os.getpid(), -1])
    (tmp_path / "graded.py").write_text(KERNEL + tries)
    assert report(nursery, tmp_path / "graded.py").error == "RuntimeError: allowed: []"
    assert not (tmp_path / "new").exists() and not Path("/tmp/new").exists()


@pytest.mark.parametrize("text", [ENDLESS, DEEP, LOCKED], ids=["much", "deeper than Python follows", "unreadable"])
def test_what_it_writes_is_capped_and_goes_with_it(nursery, tmp_path, monkeypatch, text):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "graded.py").write_text(KERNEL + text)
    own = Nursery(nursery.isolation)
    found = report(own, tmp_path / "graded.py", Caps(memory=4 << 30, written=64 << 20))
    own.close()
    assert not found.ok and found.error in ("RuntimeError: deep", "the compiler ended before it answered")
    assert list(scratch.iterdir()) == []
