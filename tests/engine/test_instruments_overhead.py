"""The instruments cost at most what the design allows, measured against the plain interpreter by turns."""

from importlib.metadata import version

import pytest

from drills.bench import overhead


@pytest.mark.skipif(version("triton").startswith("3.6."), reason="plain Triton 3.6 has no loops beside a newer numpy")
def test_the_recorder_costs_at_most_three_tenths():
    best = overhead.measure(rounds=3)
    assert set(best) == {"merge", "softmax", "attend"}
    for name, (plain, recorded) in best.items():
        assert recorded <= overhead.LIMIT * plain, f"{name}: {recorded / plain:.2f} times the plain interpreter"
