"""Calls that differ in values alone: what kernels may be told, how twins are made, and that each exercise gets one."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_lesson
import torch
from case_runner import HERE, run

from drills import session
from drills.catalog import select
from drills.instruments.notes import Launch, Notes
from drills.instruments.told import Told
from drills.run import load_facts
from drills.sandbox.client import Call
from drills.sandbox.nursery import Nursery
from drills.twins import Twins, difference, form, other_values

NAMES = re.findall(r"^@case\ndef (\w+)", (HERE / "twin_cases.py").read_text(), re.MULTILINE)
SEEN_OTHERWISE = {"a_table_kept_and_changed": "not_triton", "an_address": "told_values"}
"""Cases that come with a finding of their own."""

WORDS = {
    "a_number": "told changes in told_kernel, line 32",
    "the_size_of_a_grid": "grid changes in counting_kernel, line 62",
    "a_constant_of_a_module": "global_kernel changes",
    "one_of_two_kernels": "counting_kernel, line 62 comes in place of global_kernel, line 50",
    "the_number_of_launches": "told_kernel, line 32 comes in place of return",
    "a_filled_result": "result 0 changes in return",
    "an_input_filled_in_place": "arguments changes in aten::fill_",
}


@pytest.fixture(scope="module")
def told():
    outcomes = run("twin_cases", "ours")
    assert not [name for name, outcome in outcomes.items() if "raised" in outcome], outcomes
    return {name: outcome["got"] for name, outcome in outcomes.items()}


@pytest.mark.parametrize("name", NAMES)
def test_what_kernels_are_told_differs_only_where_values_decide(told, name):
    one, other = told[name]
    assert not one["raised"] and not other["raised"]
    if name in SEEN_OTHERWISE:
        assert SEEN_OTHERWISE[name] in [finding["kind"] for finding in one["findings"]]
    else:
        assert bool(difference(*map(Notes.from_json, (one, other)))) is not name.startswith("right")


@pytest.mark.parametrize("name", WORDS)
def test_it_is_said_what_differs(told, name):
    assert difference(*map(Notes.from_json, told[name])) == WORDS[name]


@pytest.mark.parametrize("place", [0x21B41480, 0x7EFF84874000])
def test_an_address_is_where_it_points_to_however_low(place):
    """Debian's Python lies at a fixed address and has small tensors below 4 GB; that was taken for a number."""
    one = Told(SimpleNamespace(inputs={}), None, True)
    one._places = lambda: [(place, 64)]
    assert [one.text(place + 8), one.text(place + 64)] == ["memory 0+8", str(place + 64)]
    table = np.array([[place + 4], [3]]).view(np.uint8)
    assert one._without_addresses(table) == np.array([4, 3]).tobytes() + b"memory 0 at [0]"


def test_what_a_worker_makes_up_is_compared_too():
    launch = Launch("k", 1, (1,), {}, {}, [])
    assert difference(Notes(told=["no entry at all"]), Notes()) == "nothing comes in place of no entry at all"
    assert difference(Notes(told=["a; b"]), Notes(told=["a; b; c"])) == "c changes in a"
    assert difference(Notes([launch]), Notes()) == "the number of launches changes"


def exercises():
    facts = [load_facts(one.lesson) for one in select([])]
    return [pytest.param(one, id=f"{lesson.short}.{one.name}") for lesson in facts for one in lesson.exercises]


def tensors(args):
    for one in args:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from tensors(one)


@pytest.mark.parametrize("exercise", exercises())
def test_a_twin_has_the_form_of_its_call_and_a_right_answer(exercise):
    rng = torch.Generator().manual_seed(7)
    for _ in range(5):
        args = exercise.draw(rng)
        twin = other_values(args, rng)
        assert form(twin) == form(args)
        pairs = list(zip(tensors(args), tensors(twin), strict=True))
        assert any(not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs if a.is_floating_point())
        for a, b in pairs:
            assert a.stride() == b.stride() and a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()
            kept = ~a.isfinite() | (a == 0) if a.is_floating_point() else torch.ones_like(a, dtype=torch.bool)
            assert torch.equal(a[kept].nan_to_num(), b[kept].nan_to_num())
            assert not bool((~kept).any()) or bool((b[~kept].abs() <= a[~kept].abs().max()).all())
        assert not any(bool(one.isnan().any()) for one in exercise.oracle(*twin))


def test_a_column_that_carries_the_score_stays_its_own():
    """Redrawn among all, 100 and 300 would meet in every column, and scores would be what is left of their products."""
    q, k = torch.rand(2, 3, 8) + 1.0, torch.rand(5, 1, 8) + 1.0
    q[..., 0], k[..., 0], k[0, 0, 3] = 100.0, 300.0, 0.0
    twins = other_values((q, k), torch.Generator().manual_seed(1))
    for given, twin in zip((q, k), twins, strict=True):
        assert torch.equal(twin[..., 0], given[..., 0]) and not torch.equal(twin, given)
        assert float(twin[..., 1:].max()) <= 2.0
    assert twins[1][0, 0, 3] == 0.0 and bool((twins[1][1:, 0, 3] >= 1.0).all())


def test_values_keep_their_signs_and_a_column_of_one_size_its_size():
    """Between 400 and -400 a score is rounded once more than 400 times 600 is, and now and then too far."""
    q = torch.randn(4, 2, 8, generator=torch.Generator().manual_seed(2))
    q[..., 0] = torch.tensor([400.0, -400.0])
    (twin,) = other_values((q,), torch.Generator().manual_seed(1))
    assert torch.equal(twin[..., 0], q[..., 0])
    assert torch.equal(twin.sign(), q.sign()) and int((twin != q).sum()) > 40
    sizes, drawn = q[..., 1:].abs(), twin[..., 1:].abs()
    assert bool((drawn <= sizes.amax((0, 1))).all() and (drawn >= sizes.amin((0, 1))).all())


def test_keys_of_another_size_than_the_values_beside_them_stay_apart():
    """Drawn between the two, values in the same columns of the cache would overflow, and a right answer with them."""
    rng = torch.Generator().manual_seed(3)
    kv_cache = torch.rand(4, 2, 3, 1, 2, generator=rng) + 1.0
    kv_cache[:, 0] = 2.0**127
    (twin,) = other_values((kv_cache,), rng)
    assert torch.equal(twin[:, 0], kv_cache[:, 0])
    assert not torch.equal(twin, kv_cache) and float(twin[:, 1].max()) <= 2.0
    kv_cache[:2, 0] = 2.0**12
    (twin,) = other_values((kv_cache,), rng)
    assert bool((twin[:, 0] >= 2.0**12).all()) and float(twin[:, 1].max()) <= 2.0


def test_views_of_one_memory_are_that_in_a_twin_too():
    x = torch.randn(4, 6)
    left, right = other_values((x[:, :3], x[:, 3:]), torch.Generator().manual_seed(1))
    assert left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr()
    assert form((left, right)) == form((x[:, :3], x[:, 3:])) != form((x[:, :3], x[:, :3]))


def test_a_repeated_row_stays_repeated():
    x = torch.randn(1, 6).expand(3, 6)
    (y,) = other_values((x,), torch.Generator().manual_seed(1))
    assert y.stride() == (0, 1) and not torch.equal(x, y)


@pytest.mark.parametrize(
    "args",
    [
        (torch.arange(4),),
        (torch.full((4,), 2.0**100),),
        (torch.zeros(3), torch.tensor([math.nan, -math.inf])),
        (torch.empty(0),),
        (torch.randn(8).as_strided((3, 4), (2, 1)),),
        (torch.randn(1 << 20),),
    ],
    ids=["no floats", "all equal", "nothing to change", "empty", "overlapping", "large"],
)
def test_some_calls_have_no_twin(args):
    assert other_values(args, torch.Generator().manual_seed(1)) is None


def test_form_sees_all_but_values():
    x, n = torch.randn(2, 3), torch.tensor([1, 2])
    base = (x, [n, None, 0.5])
    same = (torch.randn(2, 3), [n.clone(), None, 0.5])
    others = [
        (x.double(), [n, None, 0.5]),
        (x.t().contiguous().t(), [n, None, 0.5]),
        (torch.randn(3, 2), [n, None, 0.5]),
        (x, [torch.tensor([1, 3]), None, 0.5]),
        (x, [n.int(), None, 0.5]),
        (x, [n, None, 0.25]),
        (x, [n, None], 0.5),
        (torch.randn(3, 3)[1:], [n, None, 0.5]),
    ]
    assert form(same) == form(base)
    assert len({form(one) for one in (base, *others)}) == len(others) + 1


# A lesson

UNSEEN = """
import threading

CACHE = {}

def unseen(x):
    made = []
    thread = threading.Thread(target=lambda: made.extend((2 * x).tolist()))
    thread.start()
    thread.join()
    return tuple(made)

@triton.jit
def told_kernel(x_ptr, y_ptr, told, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < N)
    for at in tl.static_range(N):
        y = tl.where(i == at, told[at], y)
    tl.store(y_ptr + i, y, mask=i < N)

def double(x):
    y = torch.empty_like(x)
    if len(x):
        told_kernel[(1,)](x, y, TOLD, len(x), triton.next_power_of_2(len(x)))
    return y
"""


@pytest.fixture(scope="module")
def nursery():
    session.prepare()
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def grade(nursery, tmp_path):
    """Grades an answer to the tiny lesson's first exercise. No two of its tests make calls of the same form."""

    def grade(text, **request):
        entry = tiny_lesson.build(tmp_path / "tiny")
        tiny_lesson.written(entry, tmp_path / "answers", text)
        chosen = (tiny_lesson.selection(entry, "double"),)
        request = {"device": "cpu", "timeout": 5.0, "gate": False, **request}
        return session.grade(session.Request(chosen, tmp_path / "answers", **request), nursery).lessons[0].exercises[0]

    return grade


@pytest.mark.parametrize(
    "told, kind",
    [("unseen(x)", "told_values"), ("CACHE.setdefault(len(x), unseen(x))", "wrong_value")],
    ids=["other numbers in the second call", "the first call's numbers once more"],
)
def test_a_call_made_again_finds_who_is_told_the_result(grade, told, kind):
    got = grade(tiny_lesson.SOLUTION.split("@triton.jit")[0] + UNSEEN.replace("TOLD", told))
    *others, last = [test for test in got.tests if test.level != "compile"]
    assert all(test.outcome == "passed" for test in others)
    assert (last.failure.kind, last.failure.level) == (kind, "value")
    assert last.title == "a call of an earlier test once more, with other values"


def test_who_computes_only_some_calls_elsewhere_is_found_in_those(grade):
    head, tail = tiny_lesson.SOLUTION.split("def double(x):")
    only_here = "def double(x):\n    if len(x) != 64:\n        return plain(x)"
    elsewhere = UNSEEN.replace("TOLD", "unseen(x)").replace("def double(x):", only_here)
    for seed in range(3):
        got = grade(f"{head}def plain(x):{tail}\n{elsewhere}", seed=seed)
        *others, last = [test for test in got.tests if test.level != "compile"]
        assert all(test.outcome == "passed" for test in others)
        assert last.failure.kind == "told_values"


def test_one_call_is_made_again_after_the_last_test(grade):
    first = "    y = torch.empty_like(x)\n"
    got = grade(tiny_lesson.SOLUTION.replace(first, f"    print(len(x))\n{first}"))
    printed = [test.printed.split() for test in got.tests if test.level != "compile"]
    assert got.state == "passed"
    assert [len(one) for one in printed] == [1] * (len(printed) - 1) + [2]


def test_every_call_is_made_again_on_demand(grade):
    first = "    y = torch.empty_like(x)\n"
    got = grade(tiny_lesson.SOLUTION.replace(first, f"    print(len(x))\n{first}"), every_twin=True)
    *others, last = [test.printed.split() for test in got.tests if test.level != "compile"]
    assert got.state == "passed" and [len(one) for one in others] == [1] * len(others)
    assert sorted(last[1:]) == sorted(size for one in others + [last[:1]] for size in one if int(size) > 1)


def test_a_call_drawn_by_lot_has_the_values_that_it_has_among_all():
    """So that who repeats a run with its seed meets what it met, however long each call takes this time."""
    calls = [Call("double", (torch.rand(size),)) for size in range(8, 36)]

    def draw(purpose):
        return torch.Generator().manual_seed(99 if purpose == "lot" else purpose)

    def made(every, seconds):
        twins = Twins()
        for number, call in enumerate(calls):
            twins.good(call, seconds(number), ["a" if number % 3 else "b", f"grid {number}"])
        return [one.args[0] for one in twins.others("double", draw, every)]

    every = made(True, lambda number: 1.0)
    lots = [made(False, lambda number, at=at: 0.001 if number in (at, at + 1) else 50.0) for at in range(2, 20, 3)]
    assert len(every) == len(calls) and all(len(lot) == 2 for lot in lots)
    assert all(any(torch.equal(one, other) for other in every) for lot in lots for one in lot)
    assert len({len(lot[0]) for lot in lots}) > 1


def test_the_first_of_several_forms_is_remembered():
    exercise, x = load_facts(select(["l1.softmax"])[0].lesson).exercises[1], torch.randn(2, 3)
    twins = Twins()
    assert twins.told(exercise, (x, 4), Notes(told=["a; b = 1"]), "value") is None
    assert twins.told(exercise, (x, 8), Notes(told=["a; b = 2"]), "value") is None
    failure = twins.told(exercise, (x + 1, 4), Notes(told=["a; b = 2"]), "edge")
    assert (failure.kind, failure.level) == ("told_values", "edge")
    assert failure.got == "where only values of the inputs change, b changes in a"
