"""Answers of the compile gate kept between runs: what finds them again, and what must not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from drills.instruments import gate_store
from drills.instruments.gate_depth import Depth
from drills.instruments.gate_spec import checked
from drills.instruments.gate_store import Store
from drills.instruments.notes import Launch

FILE = b"import triton\n\n\n@triton.jit\ndef copies(x):\n    pass\n\n\ndef wraps(x):\n    return x\n"
SPEC = checked(Launch("copies", 5, (1,), {"x": "*fp16"}, {}, []))
GOOD = {"ok": True, "id": 0, "figures": {}}
BAD = {"ok": False, "id": 0, "error": "no"}


def kept(folder: Path, answer: dict, *, text: bytes = FILE, depth: Depth = Depth.FULL) -> object:
    """What a later run finds of this answer about FILE, if it asks for this text and depth."""
    Store(folder).put(FILE, SPEC, "sm_90", Depth.FULL, answer)
    return Store(folder).get(text, SPEC, "sm_90", depth)


@pytest.mark.parametrize("answer", [GOOD, BAD])
def test_an_answer_is_found_again_for_the_same_file_and_depth_only(tmp_path, answer):
    assert kept(tmp_path, answer) == answer
    assert kept(tmp_path, answer, depth=Depth.LOWERED) is None
    assert kept(tmp_path, answer, text=FILE.replace(b"pass", b"return")) is None


def test_only_a_refusal_is_forgotten_when_a_wrapper_changes(tmp_path):
    edited = FILE.replace(b"return x", b"return 1")
    assert kept(tmp_path / "good", GOOD, text=edited) == GOOD
    assert kept(tmp_path / "bad", BAD, text=edited) is None


def test_what_the_top_level_uses_through_others_counts():
    chain = FILE + b"".join(b"\ndef f%d():\n    return f%d\n" % (at, at + 1) for at in range(4000)) + b"\nX = f0()\n"
    begun = time.monotonic()
    edited = chain.replace(b"return f3000", b"return 3000")
    assert gate_store.kernels_only(edited) != gate_store.kernels_only(chain)
    assert b"f3999" in gate_store.kernels_only(chain) and b"wraps" not in gate_store.kernels_only(chain)
    assert time.monotonic() - begun < 10  # each function was looked through once for each that is used


@pytest.mark.parametrize("answer", [GOOD, BAD])
def test_no_answer_outlives_a_change_of_the_grader(tmp_path, answer, monkeypatch):
    assert kept(tmp_path, answer) == answer
    monkeypatch.setattr(gate_store, "ours", lambda: "another version")
    assert Store(tmp_path).get(FILE, SPEC, "sm_90", Depth.FULL) is None


def test_a_store_may_keep_no_refusals(tmp_path):
    store = Store(tmp_path, refusals=False)
    store.put(FILE, SPEC, "sm_90", Depth.FULL, BAD)
    assert store.get(FILE, SPEC, "sm_90", Depth.FULL) is None and not list(tmp_path.iterdir())
