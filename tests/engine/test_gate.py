"""The gate's processes: what dies, hangs, lies or floods becomes a report; answers are kept; nothing is left behind."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest
from gate_bench import PLAIN, C, Starter, launch, one

from drills.instruments.gate import CompileGate
from drills.instruments.gate_plan import FRONT_ARCH
from drills.instruments.gate_report import KINDS
from drills.instruments.own_words import proof

ACCEPTED = Path(__file__).with_name("gate_accepted.py")
HEAD = "import os\nimport sys\nimport time\n\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = "@triton.jit\ndef fill(x, n, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), 0.0)\n"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where the gate's processes put their temporary folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def graded(folder: Path, text: str = KERNEL, name: str = "graded.py") -> Path:
    file = folder / name
    file.write_text(HEAD + text)
    return file


def never_starts() -> socket.socket:
    raise AssertionError("no process is needed here")


def test_a_kernel_in_a_file_compiles_and_nothing_is_left(folder):
    file, start = graded(folder), Starter()
    (folder / "drills-gate-of-yesterday").mkdir()
    os.utime(folder / "drills-gate-of-yesterday", (0, 0))
    gate = CompileGate(start)
    reports = one(gate, file, launch("fill", file, PLAIN))
    assert [(report.target, report.ok, report.line) for report in reports] == [
        ("sm_90", True, None),
        ("sm_80", True, None),
    ]
    gate.close()
    assert start.all_gone()
    assert [path.name for path in folder.iterdir()] == ["graded.py"]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("os._exit(0)", "ended before it answered"),
        ("os.abort()", "ended with signal SIGABRT"),
        ("sys.stderr.write('LLVM ERROR: out of steam\\n'); sys.stderr.flush(); os.abort()", "LLVM ERROR: out of steam"),
    ],
)
def test_a_file_that_ends_the_process_is_reported(folder, statement, words):
    file = graded(folder, f"if 'TRITON_INTERPRET' not in os.environ:\n    {statement}\n\n\n{KERNEL}")
    gate = CompileGate(Starter())
    reports = one(gate, file, launch("fill", file, PLAIN))
    gate.close()
    assert {report.kind for report in reports} == {"compile_died"}
    assert words in reports[0].error


def test_a_compilation_without_end_is_stopped_and_the_rest_of_its_kernel_given_up(folder):
    gate, start = CompileGate(Starter(), seconds=3.0), time.monotonic()
    endless = [launch("takes_forever", ACCEPTED, {**PLAIN, "B": (C, size)}) for size in (16, 32, 64, 128)]
    reports = one(gate, ACCEPTED, *endless, launch("returns_early", ACCEPTED, PLAIN), timeout=100.0)
    gate.close()
    assert {report.kind for report in reports if report.kernel == "takes_forever"} == {"compile_timeout"}
    assert all(report.ok for report in reports if report.kernel == "returns_early")
    assert time.monotonic() - start < 100


def test_a_file_that_does_not_load_is_named_with_its_line(folder):
    file = graded(folder, KERNEL + "\n\ndef calls():\n    by_another()\n\n\ncalls()\n")
    gate = CompileGate(Starter())
    report = one(gate, file, *(launch("fill", file, {**PLAIN, "B": (C, size)}) for size in (16, 32)))[0]
    gate.close()
    assert (report.kind, report.source) == ("compile_import", "calls()")  # not the line that it calls
    assert "by_another" in report.error


def test_what_is_not_done_in_time_is_no_pass(folder):
    file = graded(folder, "time.sleep(5)\n" + KERNEL)
    gate = CompileGate(Starter())
    reports = one(gate, file, launch("fill", file, PLAIN), timeout=0.3)
    gate.close()
    assert {(report.ok, report.kind) for report in reports} == {(False, "compile_unfinished")}


def test_what_was_launched_is_compiled_whatever_becomes_of_the_file_meanwhile(folder):
    file = graded(folder)
    start = Starter()

    def slow_start() -> socket.socket:
        file.write_text("raise SystemExit\n")
        return start()

    gate = CompileGate(slow_start)
    report = one(gate, file, launch("fill", file, PLAIN))[0]
    gate.close()
    assert report.ok, report.error


ASKED = b"987654321"


def liar(answers: list[bytes]):
    """A `start` whose process says these things whatever it is asked, one a question, then nothing.

    ASKED in them becomes the number of the question. Each line is proven, as graded code could have it done.
    """

    def start() -> socket.socket:
        here, there = socket.socketpair()

        def talk() -> None:
            key = b""
            with there:
                for answer in answers:
                    question = there.recv(1 << 16)
                    if not question:
                        return
                    number = re.search(rb'"id": (\d+)', question)[1]
                    given = re.search(rb'"key": "(\w+)', question)
                    key = bytes.fromhex(given[1].decode()) if given else key
                    lines = [one for one in answer.replace(ASKED, number).split(b"\n") if one]
                    try:
                        there.sendall(b"".join(proof(key, one).hex().encode() + b" " + one + b"\n" for one in lines))
                    except OSError:
                        return

        threading.Thread(target=talk, daemon=True).start()
        return here

    return start


def claim(**more: object) -> bytes:
    return json.dumps({"id": int(ASKED), "ok": True, "figures": {}, **more}).encode() + b"\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xfe not json\n",
        b"[" * 50_000 + b"\n",
        b"x" * 200_000,
        b"null\n",
        b'{"id": %b}\n' % ASKED,
        claim(id=None),
        b"".join(claim(id=number) for number in range(200)),
        claim(ok="yes"),
        claim(ok=False, kind="invented", error=["no", "text"], line=10**30, node=7),
        claim(ok=False, error="\x1b[31mred\x07" * 10_000, line=-4),
        b"",
    ],
    ids=range(11),
)
def test_no_answer_can_do_more_than_fail(folder, answer):
    file = graded(folder)
    gate = CompileGate(liar([answer]))
    reports = one(gate, file, launch("fill", file, PLAIN), timeout=5)
    gate.close()
    for report in reports:
        assert not report.ok
        assert report.kind in KINDS
        assert report.line is None
        assert report.error.isprintable() and len(report.error) <= 400


def test_figures_that_are_none_are_zero(folder):
    file = graded(folder)
    odd = {"registers": "many", "spills": -1, "shared": 1e9, "load_width": True, "loads": {"4": 2, "x": 1}, "tf32": 1}
    gate = CompileGate(liar([claim(figures=odd), claim(figures=odd)]))
    report = one(gate, file, launch("fill", file, PLAIN), timeout=3)[0]
    gate.close()
    assert report.ok
    assert (report.registers, report.spills, report.shared, report.load_width) == (0, 0, 0, 0)
    assert (report.loads, report.tf32) == ({4: 2}, False)


def test_no_process_at_all_is_reported(folder):
    def start() -> socket.socket:
        raise OSError("no more processes")

    file = graded(folder)
    gate = CompileGate(start)
    assert {report.kind for report in one(gate, file, launch("fill", file, PLAIN), timeout=5)} == {"compile_died"}
    gate.close()


def test_answers_are_kept_over_an_edit_of_a_wrapper_and_not_of_a_kernel(folder):
    wrapper = "\n\ndef wrap(x):\n    fill[(1,)](x, 1, 64)\n"
    file = graded(folder, KERNEL + wrapper)
    gate = CompileGate(Starter(), folder / "kept")
    first = one(gate, file, launch("fill", file, PLAIN))
    gate.close()
    file.write_text(HEAD + "\n# a comment\n\ndef wrap(x):\n    fill[(2,)](x, 1, 64)\n\n\n" + KERNEL)
    gate = CompileGate(never_starts, folder / "kept")
    assert one(gate, file, launch("fill", file, PLAIN)) == first
    gate.close()
    file.write_text(file.read_text().replace("0.0", "1.0"))
    with pytest.raises(AssertionError, match="no process"):
        CompileGate(never_starts, folder / "kept").submit(file, "x", [launch("fill", file, PLAIN)])


def test_refusals_are_kept_for_the_very_same_file(folder):
    text = KERNEL.replace("    tl.store", "    y = mising\n    tl.store")
    file = graded(folder, text)
    gate = CompileGate(Starter(), folder / "kept")
    first = one(gate, file, launch("fill", file, PLAIN))
    gate.close()
    assert [(report.ok, report.source) for report in first] == [(False, "y = mising")] * 2
    gate = CompileGate(never_starts, folder / "kept")
    assert one(gate, file, launch("fill", file, PLAIN)) == first
    gate.close()
    file.write_text(file.read_text().replace("y = mising", "y = missing"))
    with pytest.raises(AssertionError, match="no process"):
        CompileGate(never_starts, folder / "kept").submit(file, "x", [launch("fill", file, PLAIN)])


def test_a_cache_that_cannot_be_used_is_done_without(folder):
    file = graded(folder)
    (folder / "kept").write_text("a file where a folder should be")
    gate = CompileGate(liar([claim(), claim()]), folder / "kept")
    assert all(report.ok for report in one(gate, file, launch("fill", file, PLAIN), timeout=5))
    gate.close()


def test_spoilt_files_in_the_cache_are_asked_again(folder):
    file = graded(folder)
    for spoilt in (b"", b"{}", b"[]", b"\xff", b'{"ok": 1}', b"[" * 9000):
        gate = CompileGate(liar([claim(), claim()]), folder / "kept")
        assert all(report.ok for report in one(gate, file, launch("fill", file, PLAIN), timeout=5))
        gate.close()
        for kept in (folder / "kept").iterdir():
            kept.write_bytes(spoilt)


def test_submitting_does_not_wait(folder):
    file = graded(folder, "time.sleep(2)\n" + KERNEL)
    gate, start = CompileGate(Starter()), time.monotonic()
    gate.submit(file, "x", [launch("fill", file, PLAIN)])
    assert time.monotonic() - start < 1
    gate.close()
    assert time.monotonic() - start < 5


def test_a_launch_of_a_file_that_is_not_there_is_reported(folder):
    gate = CompileGate(never_starts)
    reports = one(gate, folder / "gone.py", launch("returns_early", ACCEPTED, PLAIN), timeout=1)
    assert [(report.ok, report.error) for report in reports] == [
        (False, "the file cannot be read: No such file or directory")
    ]


def test_each_specialisation_goes_to_the_compiler_once(folder):
    asked = []

    class Counting(Starter):
        def __call__(self) -> socket.socket:
            asked.append(os.getpid())
            return super().__call__()

    gate = CompileGate(Counting())
    same = [launch("calls_a_helper", ACCEPTED, PLAIN) for _ in range(20)]
    assert len(one(gate, ACCEPTED, *same)) == 2
    assert len(one(gate, ACCEPTED, *same, exercise="y")) == 2
    gate.close()
    assert len(asked) == 1
    assert FRONT_ARCH == 80


def test_on_a_version_of_triton_that_is_not_known_the_figures_are_the_same(folder):
    note = launch("calls_a_helper", ACCEPTED, PLAIN, "x")
    found = []
    for first in ("pass", "import drills.instruments.gate_compile as g; g.KNOWN = ('0.0.',)"):
        start = Starter(first)
        gate = CompileGate(start)
        found.append(one(gate, ACCEPTED, note))
        gate.close()
        assert start.all_gone()
    assert found[0] == found[1]
    assert (found[0][0].load_width, found[0][0].registers > 0) == (4, True)
    assert not list(folder.iterdir())


def test_what_only_tidies_up_stands_behind_the_lowering():
    """The gate leaves these passes out where it stops before LLVM's turn: none may be one that can refuse."""
    found = importlib.util.find_spec("triton")
    text = (Path(found.submodule_search_locations[0]) / "backends/nvidia/compiler.py").read_text()
    stage = text[text.index("def make_llir") : text.index("def make_ptx")]
    before, _, behind = stage.partition("add_to_llvmir")
    left_out = re.compile(r"[^.\w]passes\.(?:common|llvmir)\.(\w+)")
    tidy = {"add_canonicalizer", "add_cse", "add_symbol_dce", "add_di_scope", "add_di_local_variable"}
    assert not left_out.findall(before) and set(left_out.findall(behind)) == tidy
