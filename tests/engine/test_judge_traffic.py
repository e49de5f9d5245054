"""Traffic: the multiple of the least bytes, and which tensor was moved how often."""

from dataclasses import replace

import pytest
import torch

from drills import judge
from drills.instruments.notes import Launch, Traffic
from drills.lessons import l1_online_softmax
from drills.lessons.l4_merge_states import LESSON

MERGE, IN_PLACE = LESSON.exercise("merge_state"), LESSON.exercise("merge_state_in_place")
SOFTMAX = l1_online_softmax.LESSON.exercise("softmax")
V, S = torch.zeros(2, 4, 64, dtype=torch.float16), torch.ones(2, 4)
ARGS = (V, S, V, S)
VALUES, SUMS = 2 * 4 * 64 * 2, 2 * 4 * 4


def launch(**tensors):
    """A launch whose parameters are named like the tensors. tensor: (bytes loaded, bytes stored)."""
    traffic = {
        name: Traffic(loaded, min(loaded, VALUES if "v" in name or name == "r0" else SUMS), stored, stored)
        for name, (loaded, stored) in tensors.items()
    }
    names = {name: {"r0": "result 0", "r1": "result 1", "w": "workspace 0"}.get(name, name) for name in tensors}
    return Launch("kernel", 1, (1,), {}, {}, [], traffic=traffic, tensors=names)


LEAST = {"v_a": (VALUES, 0), "v_b": (VALUES, 0), "s_a": (SUMS, 0), "s_b": (SUMS, 0), "r0": (0, VALUES), "r1": (0, SUMS)}


def test_the_least_is_one():
    assert judge.multiple(MERGE, ARGS, [launch(**LEAST)]) == 1
    assert judge.traffic(MERGE, ARGS, [launch(**LEAST)]) is None


def test_a_value_read_twice_is_named():
    failure = judge.traffic(MERGE, ARGS, [launch(**LEAST | {"v_b": (2 * VALUES, 0)})])
    assert (failure.kind, failure.level) == ("traffic", "traffic")
    assert "1.32 times the least possible: v_b is read 2.0 times" in failure.got
    assert failure.likely.startswith("Load v_b once")


def test_a_result_written_twice_is_named_as_the_result():
    twice = launch(**LEAST)
    twice.traffic["r0"] = Traffic(stored=2 * VALUES, distinct_stored=VALUES)
    assert "the result v is written 2.0 times" in judge.traffic(MERGE, ARGS, [twice]).got


def test_a_result_that_is_read_back_is_blamed_and_not_the_second_read_that_is_allowed():
    """exp(x - m) is stored, the sum follows, and what was stored is read, divided and stored again."""
    x = torch.zeros(2, 500, dtype=torch.float16)
    size = 2 * 500 * 2
    moved = Launch("kernel", 1, (1,), {}, {}, [], tensors={"x": "x", "y": "result 0"})
    moved.traffic = {"x": Traffic(2 * size, size), "y": Traffic(size, size, 2 * size, size)}
    failure = judge.traffic(SOFTMAX, (x, 64), [moved])
    assert "the result y is written 2.0 times, the result y is read back" in failure.got
    assert failure.likely == "Store the result y once, when it is final."


def test_a_workspace_costs():
    two = [launch(**LEAST | {"w": (0, 4 * VALUES)}), launch(w=(4 * VALUES, 0))]
    failure = judge.traffic(MERGE, ARGS, two)
    assert failure.got.endswith(f"{8 * VALUES} bytes go into and out of a workspace")
    assert "one launch" in failure.likely


def test_a_workspace_of_one_launch_is_not_blamed_on_two():
    one = launch(**LEAST | {"w": (4 * VALUES, 4 * VALUES)})
    failure = judge.traffic(MERGE, ARGS, [one])
    assert "launch" not in failure.likely and "registers" in failure.likely


def test_copies_by_torch_are_named_and_blamed():
    copies = [replace(launch(**{"v_a": (VALUES, 0), "a copy of v_a": (0, VALUES)}), kernel="torch.clone", grid=())]
    copies.append(replace(launch(**{"w": (VALUES, 0), "v_a": (0, VALUES)}), kernel=".copy_()", grid=()))
    failure = judge.traffic(MERGE, ARGS, [launch(**LEAST), *copies])
    assert failure.got.endswith(f"times the least possible: {4 * VALUES} bytes go through torch.clone and .copy_()")
    assert failure.likely.startswith("What goes through torch.clone and .copy_() is moved once more")


def test_a_copy_that_the_kernel_reads_is_blamed_on_the_copy():
    copy = replace(launch(v_a=(VALUES, 0), w=(0, 2 * VALUES)), kernel=".copy_()", grid=())
    failure = judge.traffic(MERGE, ARGS, [launch(**LEAST | {"v_a": (0, 0), "w": (2 * VALUES, 0)}), copy])
    assert failure.likely.startswith("What goes through .copy_() is moved once more")


def test_a_third_pass_is_advised_against_where_a_second_is_allowed():
    x = torch.zeros(2, 500, dtype=torch.float16)
    size = 2 * 500 * 2
    moved = Launch("kernel", 1, (1,), {}, {}, [], tensors={"x": "x", "y": "result 0"})
    moved.traffic = {"x": Traffic(3 * size, size), "y": Traffic(stored=size, distinct_stored=size)}
    failure = judge.traffic(SOFTMAX, (x, 64), [moved])
    assert "x is read 3.0 times" in failure.got
    assert failure.likely.startswith("Read x twice at most: the maximum and the sum need one pass")


def test_an_exercise_may_say_what_to_do_about_a_tensor_that_is_read_again():
    shared = replace(MERGE, read_again="Give a program more rows of {}.")
    again = [launch(**LEAST | {"v_b": (2 * VALUES, 0)})]
    assert judge.traffic(shared, ARGS, again).likely == "Give a program more rows of v_b."
    assert judge.traffic(MERGE, ARGS, again).likely != "Give a program more rows of v_b."


def test_the_limit_is_the_exercise_s():
    twice = [launch(**LEAST | {"v_b": (2 * VALUES, 0)})]
    assert judge.traffic(replace(MERGE, limit=1.5), ARGS, twice) is None


def test_only_counted_parameters_count():
    """In place, the values that are loaded count, and nothing else."""
    once = launch(v=(VALUES, VALUES), v_other=(VALUES, 0), s=(9 * SUMS, SUMS), w=(9 * VALUES, 0))
    assert judge.multiple(IN_PLACE, ARGS, [once]) == 1
    again = launch(v=(2 * VALUES, VALUES), v_other=(VALUES, 0))
    assert judge.multiple(IN_PLACE, ARGS, [again]) == 1.5


def test_nothing_to_move_is_no_multiple():
    assert judge.multiple(MERGE, (V[:0], S[:0], V[:0], S[:0]), []) is None


@pytest.mark.parametrize("share, passes", [(1.0, True), (0.5, False), (0.0, False)])
def test_who_reads_less_than_the_input_did_not_compute(share, passes):
    some = launch(**{name: (int(loaded * share), stored) for name, (loaded, stored) in LEAST.items()})
    failure = judge.read_too_little(MERGE, ARGS, [some], "value")
    assert (failure is None) == passes


def test_an_input_that_repeats_itself_may_be_read_once():
    again = V[:1].expand(2, 4, 64)
    assert judge.read_too_little(MERGE, (again, S, V, S), [launch(v_a=(VALUES // 2, 0))], "value") is None


@pytest.mark.parametrize("grid, said", [((2, 3), None), ((5,), "5 programs at once"), ((1,), "1 program at once")])
def test_programs_are_counted_in_the_largest_launch(grid, said):
    launches = [Launch("kernel", 1, one, {}, {}, []) for one in ((1,), grid)]
    failure = judge.too_few_programs(MERGE, ARGS, launches, 6, "traffic")
    assert (failure and failure.got) == said and judge.too_few_programs(MERGE, ARGS, [], 6, "traffic") is None
