"""Timing by turns without a GPU: who runs when, and what becomes of a function that does not run."""

import argparse
import functools
from types import SimpleNamespace

import pytest
import torch

from drills.bench import timing, turns
from drills.bench.peers import Peer
from drills.bench.rows import Machine
from drills.bench.timing import Clock, Times
from drills.lessons import l4_merge_states
from drills.lessons.base import BenchCase

LESSON = l4_merge_states.LESSON
CASE = BenchCase("merge_state", "small", functools.partial(l4_merge_states.bench_two, S=3, H=2, D=8))
MACHINE = Machine("a card", {"torch": "2"}, copy_rate=4e12, matrix_rate=8e14, launch=4.0)


def right_merge(v_a, s_a, v_b, s_b):
    v, s = LESSON.exercise("merge_state").oracle(v_a, s_a, v_b, s_b)
    return v.to(v_a.dtype), s.float()


class Stopped:
    """A clock whose n-th function takes 10 · n µs."""

    device = torch.device("cpu")

    def settle(self):
        pass

    def by_turns(self, functions, rounds):
        return [Times(10.0 * (at + 1), 9.0, 11.0, rounds) for at, _ in enumerate(functions)]


@pytest.fixture
def gpu(monkeypatch):
    """torch.cuda as a GPU on which every event is 1 ms after the one before it."""
    ticks = iter(range(10**6))

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = next(ticks)

        def elapsed_time(self, end):
            return float(end.at - self.at)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(timing, "capture", lambda call, pool: SimpleNamespace(replay=call))
    monkeypatch.setattr(timing, "WARM_SECONDS", 0)
    monkeypatch.setattr(timing, "FLUSH_BYTES", 64)
    return Clock(torch.device("cpu"), runs=3)


def test_every_function_runs_once_a_round_in_any_order_with_its_inputs_rotated(gpu):
    ran = []
    calls = [[functools.partial(ran.append, f"{who}{at}") for at in (1, 2)] for who in "ab"]
    times = gpu.by_turns(calls, rounds=12)
    rounds = [ran[at : at + 2] for at in range(0, len(ran), 2)]
    assert [sorted(one) for one in rounds] == [["a1", "b1"], ["a2", "b2"]] * 6
    assert {one[0][0] for one in rounds} == {"a", "b"}
    assert [one.median for one in times] == [1000.0, 1000.0] and times[0].runs == 12


def test_one_function_alone_is_timed_as_often_as_the_clock_says(gpu):
    ran = []
    assert gpu.graph([lambda: ran.append(1)]).runs == 3 and len(ran) == 3


def test_a_peer_that_does_not_run_is_left_out(monkeypatch, capsys):
    peers = [
        Peer("Broken", "torch", "merge_state", lambda *a: lambda: 1 / 0),
        Peer("Sound", "torch", "merge_state", lambda *a: lambda: right_merge(*a)),
        Peer("Unwanted", "torch", "merge_state", lambda *a: lambda: right_merge(*a)),
    ]
    monkeypatch.setattr(turns, "peers_of", lambda exercise: peers)
    options = argparse.Namespace(dtype="float16", peer=["Broken", "Sound"], rounds=5)
    ours = {"solution": {"merge_state": right_merge}}
    rows = list(turns.measured(LESSON, CASE, ours, options, Stopped(), MACHINE))
    assert [(row.who, row.graph) for row in rows] == [("solution", 10.0), ("Sound", 20.0)]
    assert "Broken does not run: division by zero" in capsys.readouterr().out
