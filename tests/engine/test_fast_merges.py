"""The fast merge of many states passes the lesson's own tests at every level, the compile gate's too."""

import json
import shutil
import subprocess
import sys

import pytest

from drills import catalog

LESSON = catalog.find("l4").lesson


def test_it_has_the_two_exercises_that_take_many_states():
    assert LESSON.fast_exercises == ("merge_states", "variable_length_merge_states")


@pytest.mark.skipif(not LESSON.fast.is_file(), reason=catalog.NOT_HERE)
def test_it_passes_what_a_learner_has_to_pass(tmp_path):
    shutil.copy(LESSON.fast, tmp_path / LESSON.solution.name)
    names = [f"{LESSON.short}.{name}" for name in LESSON.fast_exercises]
    command = [sys.executable, "grade.py", *names, "--target", str(tmp_path), "--device", "cpu", "--plain"]
    run = subprocess.run(
        [*command, "--json", str(tmp_path / "result.json")],
        cwd=catalog.ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    (lesson,) = json.loads((tmp_path / "result.json").read_text())["lessons"]
    states = {
        one["name"]: {name: level["state"] for name, level in one["levels"].items()} for one in lesson["exercises"]
    }
    assert set(states) == set(LESSON.fast_exercises)
    assert all(state == "passed" for one in states.values() for state in one.values()), states
