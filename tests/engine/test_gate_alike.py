"""What the front end need not see: whatever it would refuse, it also refuses among the launches that it is shown."""

from __future__ import annotations

import ast
import random
from dataclasses import replace
from pathlib import Path

import pytest
from gate_bench import C, Starter, launch

from drills.instruments.gate_alike import enough, view
from drills.instruments.gate_depth import Depth
from drills.instruments.gate_lane import Lane
from drills.instruments.gate_plan import Compilation, Entry
from drills.instruments.gate_spec import Spec, checked
from drills.instruments.gate_text import Text, first

FILE = Path(__file__).with_name("gate_some_fail.py")
DATA = FILE.read_bytes()
TEXT = Text(DATA)
HELPERS = ("_of", "_helper")
FUNCTIONS = [one.name for one in ast.parse(DATA).body if isinstance(one, ast.FunctionDef)]
KERNELS = [name for name in FUNCTIONS if not name.endswith(HELPERS)]
DRAWS = random.Random(7)
SIZES = ((32, 16, 16), (40, 16, 32), (80, 64, 8), (40, 32, 32), (16, 8, 64), (32, 64, 32), (64, 1, 32), (40, 32, 16))


def launches(kernel: str) -> list[Spec]:
    """It, launched with sizes, types and flags that all differ."""
    made = []
    sizes = [
        (32, 16, 16),
        (40, 16, 32),
        (80, 64, 8),
        (40, 32, 32),
        (16, 8, 64),
        (32, 64, 32),
        (64, 1, 32),
        (40, 32, 16),
    ]
    for number, (k, m, n) in enumerate(sizes * 2):
        kinds = {
            "a": "*fp32", "b": ("*fp16", "*i32", "*fp32")[number % 3], "mask": "*i8" if number % 5 else (C, None),
            "step": "i32" if number % 2 else (C, 1), "K": (C, k), "M": (C, m), "N": (C, n), "FLAG": (C, number % 4 < 2),
        }  # fmt: skip
        made.append(checked(launch(kernel, FILE, kinds)))
    return made


@pytest.fixture(scope="module")
def front_end():
    lane = Lane(Starter()(), lambda: None, lambda *_: None)

    def ask(spec: Spec) -> bool:
        answer = lane.ask(Compilation(Entry(str(FILE), DATA, "0", TEXT, spec), 80, Depth.FRONT, 20.0))
        assert answer["ok"] or answer["kind"] == "compile_error", answer
        return answer["ok"]

    yield ask
    lane.hang_up()
    lane.finish()


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_some_launches_are_refused_for_is_found(kernel, front_end):
    """In all of them, and in whatever part of them a test file happens to launch."""
    specs = launches(kernel)
    taken = [front_end(one) for one in specs]
    views = [view(TEXT, one) for one in specs]
    assert any(taken) and all(taken) == (kernel == "all_is_well")
    for _ in range(200):
        part = DRAWS.sample(range(len(specs)), DRAWS.randint(2, len(specs)))
        shown = enough([views[number] for number in part], ())
        assert all(taken[part[number]] for number in shown) == all(taken[number] for number in part), part


def test_a_kernel_of_many_sizes_is_shown_a_few():
    sizes = [(k, m, n) for k in (64, 80, 96, 128) for m in (1, 8, 16, 32) for n in (16, 32, 64)]
    specs = [one_of(*each) for each in sizes]
    assert len(enough([view(TEXT, one) for one in specs], ())) <= 8
    assert enough([view(TEXT, one) for one in specs], range(len(specs))) == []


def one_of(k: int, m: int, n: int) -> Spec:
    kinds = {"a": "*fp32", "b": "*fp16", "mask": "*i8", "step": "i32", "K": (C, k), "M": (C, m), "N": (C, n)}
    return checked(launch("all_is_well", FILE, {**kinds, "FLAG": (C, True)}))


def test_text_that_is_not_understood_is_shown_for_each_launch():
    text = Text(DATA.replace(b"    PIECES: tl", b"    assert K > 0\n    PIECES: tl"))
    specs = [one_of(k, 16, 16) for k in (64, 80, 96, 128)]
    assert len(enough([view(text, one) for one in specs], ())) == 4


@pytest.mark.parametrize("name, said", [("share_of in all_is_well", "share_of, line 1"), ("range in share_of", "max")])
def test_names_that_stand_for_something_else_than_the_text_says_are_shown_for_each_launch(name, said):
    specs = [replace(one_of(k, 16, 16), names={name: said}) for k in (64, 80, 96, 128)]
    assert len(enough([view(TEXT, one) for one in specs], ())) == 4
    right = {
        "share_of in all_is_well": f"share_of, line {first(next(f for f in TEXT.functions if f.name == 'share_of'))}"
    }
    specs = [replace(one, names=right) for one in specs]
    assert len(enough([view(TEXT, one) for one in specs], ())) < 4
