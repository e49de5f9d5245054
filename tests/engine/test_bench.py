"""The bench without a GPU: what it asks for, what it counts, how it prints, and that a wrong answer gets no time."""

import argparse
import contextlib
import functools
import io
import json
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from drills.bench import command, cost, measure, plot, processes, table
from drills.bench.peers import PEERS
from drills.bench.rows import Machine, Row
from drills.bench.timing import Times
from drills.errors import GraderFailed, NothingGraded
from drills.lessons import l4_merge_states, l5_cascade
from drills.lessons.base import BenchCase
from drills.lessons.cascade_bench import make_cascade, make_levels, sample_cascade, sample_levels

MACHINE = Machine("a card", {"torch": "2"}, copy_rate=4e12, matrix_rate=8e14, launch=4.0)


class Stopped:
    """A clock whose every function takes 10 µs."""

    device = torch.device("cpu")

    def graph(self, calls):
        for call in calls:
            call()
        return Times(10.0, 9.0, 11.0, 3)

    eager = graph


def rows_of(lesson, case, functions, peers=()):
    wanted = measure.Wanted(dtypes=("float16",), peers=peers)
    one = replace(lesson, bench=(case,))
    return [row for rows in measure.measure(one, functions, wanted, Stopped(), MACHINE) for row in rows]


def two_states():
    make = functools.partial(l4_merge_states.bench_two, S=3, H=2, D=8)
    return l4_merge_states.LESSON, BenchCase("merge_state", "small", make)


def right_merge(v_a, s_a, v_b, s_b):
    v, s = l4_merge_states.LESSON.exercise("merge_state").oracle(v_a, s_a, v_b, s_b)
    return v.to(v_a.dtype), s.float()


def test_a_right_answer_is_timed_against_its_floor():
    lesson, case = two_states()
    (row,) = rows_of(lesson, case, {"solution": {"merge_state": right_merge}})
    assert row.error == "" and row.graph == 10.0
    assert row.bytes == 3 * 2 * (3 * 8 * 2 + 3 * 4)
    assert row.floor == pytest.approx(1e6 * row.bytes / 4e12)


def test_a_wrong_answer_gets_no_time():
    lesson, case = two_states()
    (row,) = rows_of(lesson, case, {"mine": {"merge_state": lambda *a: (a[0], a[1])}})
    assert row.graph == 0.0 and row.error.startswith("WrongResult: v[")


def test_a_copy_of_as_many_bytes_stands_beside_what_moves_bytes_alone():
    lesson, case = two_states()
    ours, copy = rows_of(lesson, case, {"solution": {"merge_state": right_merge}}, peers=(measure.COPY,))
    assert copy.who == "a copy" and copy.error == "" and (copy.bytes, copy.floor) == (ours.bytes, ours.floor)
    assert measure._copy(1025, torch.device("cpu"))().numel() == 1024  # read, and written
    wrong = {"solution": {"merge_state": lambda *a: (a[0], a[1])}}
    assert [row.who for row in rows_of(lesson, case, wrong, peers=(measure.COPY,))] == ["solution"]
    make = functools.partial(make_cascade, requests=5, prefix=32, own=16, kv_heads=8)
    case = BenchCase("cascade", "small", make)
    oracle = l5_cascade.LESSON.exercise("cascade").oracle
    functions = {"solution": {"cascade": lambda *a: tuple(one.to(a[0].dtype) for one in oracle(*a))}}
    assert {row.who for row in rows_of(l5_cascade.LESSON, case, functions, peers=(measure.COPY,))} == {"solution"}


def test_an_exception_is_a_row_and_the_next_function_is_measured():
    lesson, case = two_states()
    functions = {"mine": {"merge_state": lambda *a: 1 / 0}, "solution": {"merge_state": right_merge}}
    broken, sound = rows_of(lesson, case, functions)
    assert broken.error.startswith("ZeroDivisionError") and sound.graph == 10.0


def test_in_place_is_checked_on_copies_and_counted_twice():
    def in_place(v, s, v_other, s_other, mask=None):
        new_v, new_s = right_merge(v, s, v_other, s_other)
        v.copy_(new_v)
        s.copy_(new_s)

    lesson, _ = two_states()
    case = BenchCase("merge_state_in_place", "small", functools.partial(l4_merge_states.bench_two, S=3, H=2, D=8))
    (row,) = rows_of(lesson, case, {"solution": {"merge_state_in_place": in_place}})
    assert row.error == "" and row.bytes == 3 * 2 * (3 * 8 * 2 + 3 * 4)


@pytest.mark.parametrize("make, sample, name", [
    (functools.partial(make_cascade, requests=5, prefix=32, own=16, kv_heads=8), sample_cascade, "cascade"),
    (
        functools.partial(make_levels, requests=4, lengths=(32, 16, 16), groups=(1, 2, 4), kv_heads=8),
        sample_levels,
        "multi_level_cascade",
    ),
])  # fmt: skip
def test_the_sampled_requests_have_the_answer_that_all_have(make, sample, name):
    args = make("cpu", torch.float32, torch.Generator().manual_seed(1))
    exercise = l5_cascade.LESSON.exercise(name)
    some_args, some = sample(args, exercise.oracle(*args))
    for got, expected in zip(some, exercise.oracle(*some_args), strict=True):
        torch.testing.assert_close(got, expected)


def test_operations_count_every_pair_of_query_head_and_key():
    cascade = make_cascade("cpu", torch.float16, None, requests=3, prefix=32, own=16, kv_heads=8)
    levels = make_levels("cpu", torch.float16, None, requests=4, lengths=(32, 16), groups=(1, 2), kv_heads=8)
    pairs = 3 * (32 + 16)
    assert cost.operations(l5_cascade.LESSON.exercise("cascade"), cascade) == 4 * 128 * 32 * pairs
    assert cost.operations(l5_cascade.LESSON.exercise("multi_level_cascade"), levels) == 4 * 128 * 32 * 4 * (32 + 16)


def test_a_table_line_has_the_ratio_to_the_solution():
    rows = [Row("l4_x", "f", "S=1", "float16", who, graph=time) for who, time in (("solution", 10.0), ("other", 12.0))]
    lines = [table.line(row, rows) for row in rows]
    assert lines[0].endswith("1.00") and lines[1].endswith("1.20")
    assert "S=1 · float16" in lines[0] and "S=1" not in lines[1]
    assert "not timed: ValueError" in table.line(replace(rows[0], error="ValueError: no"), rows)


def test_a_table_keeps_to_80_columns_and_its_columns_to_their_headings():
    times = {"graph": 12722.24, "graph_low": 12139.4, "graph_high": 13281.1, "eager": 13563.6, "floor": 1251.9}
    shape = "Hkv=32 B=256 keys=8192+1024+128"
    row = Row("l5_x", "multi_level_cascade", shape, "bfloat16", "FlashInfer cascade", bytes=4 << 30, **times)
    first, second = table.line(row, [row]).split("\n")
    assert first == " Hkv=32 B=256 keys=8192+1024+128 · bfloat16 · floor 1251.9 µs"
    heading = table.heading(row).split("\n")[-1]
    assert len(heading) == 80 and len(second.rstrip()) <= 80
    for name, figure in (
        ("device", " 12722.2"),
        ("10–90 %", "12139.4–13281.1"),
        ("eager", " 13563.6"),
        ("share", " 0.10"),
    ):
        assert heading.index(name) + len(name) == second.index(figure) + len(figure)


def test_the_plot_has_a_panel_an_exercise_and_a_name_a_function():
    rows = [Row("l4_x", name, "S=1", "float16", "solution", graph=9.0, bytes=1000, floor=8.0) for name in ("f", "g")]
    text = plot.draw(rows)
    assert text.count("floor / device time") == 2 and "solution" in text and text.endswith("</svg>\n")


def test_peers_are_of_exercises_that_exist():
    names = {exercise.name for lesson in (l4_merge_states.LESSON, l5_cascade.LESSON) for exercise in lesson.exercises}
    assert {peer.exercise for peer in PEERS} <= names | {"softmax"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the bench would run")
def test_without_a_gpu_the_bench_says_so_in_one_line():
    request = {"lessons": {}, "dtypes": [], "match": "", "exercises": [], "runs": 1, "peers": []}
    with pytest.raises(NothingGraded, match="no CUDA GPU"):
        list(processes.answers(request))


@pytest.mark.skipif(torch.cuda.is_available(), reason="here it would run")
def test_a_process_that_is_shut_in_starts_and_finds_no_gpu():
    request = {"lessons": {"l4_merge_states": {}}, "dtypes": [], "match": "", "exercises": [], "runs": 1, "peers": []}
    with pytest.raises(NothingGraded, match="no CUDA GPU"), processes._shut_in(request):
        pass


def test_a_learners_code_is_measured_in_a_process_of_its_own_shape_by_shape(monkeypatch):
    started = []

    class Measuring(contextlib.nullcontext):
        def __init__(self, request, variables=None):
            super().__init__(self)
            self.who = [name for targets in request["lessons"].values() for name in targets]
            self.left, self.ended = 2, False
            started.append((self.who, "isolation" in request, request["peers"], request.get("machine")))

        def machine(self):
            return {"device": "a card"}

        def turn(self):
            self.left -= 1
            self.ended = self.left < 0
            yield from [] if self.ended else self.who

    monkeypatch.setattr(processes, "Measuring", Measuring)
    lessons = {"l4_merge_states": {"solution": {}, "mine": {}, "fast": {}}}
    got = list(processes.answers({"lessons": lessons, "peers": [""]}))
    assert got == [("machine", {"device": "a card"}), *[("row", who) for who in ("solution", "fast", "mine") * 2]]
    assert started == [(["solution", "fast"], False, [""], None), (["mine"], True, [], {"device": "a card"})]


def test_rows_measured_before_the_bench_is_stopped_are_kept(tmp_path, monkeypatch):
    def answers(request):
        yield "machine", MACHINE.to_json()
        yield "row", Row("l4_x", "f", "S=1", "float16", "solution", graph=9.0, bytes=1000, floor=8.0).to_json()
        raise GraderFailed("ended early")

    monkeypatch.setattr(processes, "answers", answers)
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    files = ["--json", str(tmp_path / "a.json"), "--svg", str(tmp_path / "a.svg")]
    options = parser.parse_args(["l4", "--solutions", *files])
    with pytest.raises(GraderFailed):
        command.run(options, Console(file=io.StringIO()))
    assert json.loads((tmp_path / "a.json").read_text())["rows"][0]["share"] == round(8 / 9, 4)
    assert (tmp_path / "a.svg").read_text().endswith("</svg>\n")
