"""The zip for Gradescope: what is in it, and that it grades with nothing but what is in it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from repository_of_its_own import build as small_repository
from repository_of_its_own import grade as grade_py

from drills import catalog
from drills.batch import autograder
from drills.catalog import ROOT
from drills.report import points_file
from drills.report.points import Points

L1 = catalog.select(["l1"])


def unpacked(tmp_path, *arguments, **options):
    """A folder like /autograder, with the zip's files in source/."""
    out = tmp_path / "out.zip"
    autograder.build(out, *arguments, **options)
    root = tmp_path / "autograder"
    (root / "submission").mkdir(parents=True)
    source = root / "source"
    # As `unzip` does it: Python's own extractall forgets that a file may be run.
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        for one in archive.infolist():
            archive.extract(one, source)
            (source / one.filename).chmod((one.external_attr >> 16) & 0o777)
    return root


def run(root):
    """run_autograder as Gradescope calls it, with its paths elsewhere."""
    env = {**os.environ, "AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
    command = [str(root / "source" / "run_autograder")]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=300)


def results(root):
    return json.loads((root / "results" / "results.json").read_text())


def test_both_scripts_stand_in_the_root_and_can_be_run(tmp_path):
    root = unpacked(tmp_path, L1)
    for name in ("setup.sh", "run_autograder"):
        assert (root / "source" / name).stat().st_mode & 0o111
        assert (root / "source" / name).read_text().startswith("#!/usr/bin/env bash\n")
        subprocess.run(["bash", "-n", str(root / "source" / name)], check=True)


def test_it_holds_what_grading_needs_and_no_solution(tmp_path):
    source = unpacked(tmp_path, L1) / "source"
    names = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert {"tests/test_l1_online_softmax.py", "content/l1_online_softmax.md", "grade.py", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("tests/answers", "tests/engine", "mine/", "."))]
    assert not [name for name in names if "l4_merge" in name or "l2_mlo" in name]
    assert (source / "solutions" / "l1_online_softmax.py").read_text().count("your turn") == 3
    entry = catalog.Entry("l1_online_softmax", source)
    assert entry.stub == L1[0].lesson.stub
    assert entry.exercises == L1[0].lesson.exercises
    assert entry.missing == ()


def test_the_same_repository_gives_the_same_bytes(tmp_path):
    for name in ("a.zip", "b.zip"):
        autograder.build(tmp_path / name, L1, Points(), "https://packages.example/cpu", 5.0)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.zip"]


def test_its_packages_are_those_that_grading_needs_at_their_versions():
    lines = autograder.requirements().splitlines()
    pinned = (ROOT / "requirements.txt").read_text().splitlines()
    assert set(lines) <= set(pinned)
    packages = {line.split("=")[0] for line in lines}
    assert packages == set(autograder.RUN_TIME)


def test_set_up_takes_torch_alone_from_another_index():
    plain, other = autograder.setup_script(None), autograder.setup_script("https://x.example/cpu'; rm -rf /")
    assert "--index-url" not in plain
    [line] = [line for line in other.splitlines() if "--index-url" in line]
    assert "torch==" in line
    assert """'https://x.example/cpu'"'"'; rm -rf /'""" in line
    assert other.index("--index-url") < other.index("requirements.txt")
    assert "bubblewrap" in plain


def test_lessons_exercises_and_limits_are_in_the_command():
    assert " l1 --target" in autograder.run_script(L1, False, None)
    some = autograder.run_script(catalog.select(["l4.merge_state", "l1"]), True, 30.0)
    assert "grade.py l1 l4.merge_state --target" in some
    assert some.count("--points points.toml --timeout 30") == 1


def test_points_are_those_of_the_graded_lessons_only(tmp_path):
    file = tmp_path / "points.toml"
    file.write_text("[default]\nvalue = 0.5\n[l5]\ncascade = 20\n[l1]\nattend = 7\n")
    points = points_file.load(file)
    root = unpacked(tmp_path, L1, points)
    kept = (root / "source" / "points.toml").read_text()
    assert "cascade" not in kept
    file.write_text(kept)
    again = points_file.load(file)
    for name in L1[0].exercises:
        assert again.of("l1_online_softmax", name) == points.of("l1_online_softmax", name)


def test_it_grades_a_submission_with_what_is_in_it(tmp_path):
    root = unpacked(tmp_path, catalog.select(["l1.softmax_stats"]), Points({"value": 900, "edge": 100}))
    (root / "submission" / "l1_online_softmax.py").write_text(L1[0].lesson.solution.read_text())
    done = run(root)
    assert done.returncode == 0, done.stderr + done.stdout
    tree = results(root)
    assert tree["score"] == 10
    assert tree["output"] == "1 of 1 exercise passed."
    assert [(test["name"], test["score"]) for test in tree["tests"]][:2] == [
        ("l1 softmax_stats: value", 9.0), ("l1 softmax_stats: edge", 1.0)
    ]  # fmt: skip


def test_a_whole_repository_that_was_handed_in_is_graded_in_mine(tmp_path):
    root = unpacked(tmp_path, catalog.select(["l1.softmax_stats"]), Points({"value": 1000}))
    (root / "submission" / "mine").mkdir()
    (root / "submission" / "mine" / "l1_online_softmax.py").write_text(L1[0].lesson.solution.read_text())
    assert run(root).returncode == 0 and results(root)["score"] == 10
    (root / "submission" / "l1_online_softmax.py").write_text("")  # as in a batch, the file above it counts
    assert run(root).returncode == 0 and results(root)["score"] == 0


@pytest.mark.parametrize(("text", "says"), [(None, "there is no"), ("def f(:\n", "syntax error"), ("", "0 of 1")])
def test_what_cannot_be_graded_scores_0_and_says_why(tmp_path, text, says):
    root = unpacked(tmp_path, catalog.select(["l1.softmax_stats"]))
    if text is not None:
        (root / "submission" / "l1_online_softmax.py").write_text(text)
    assert run(root).returncode == 0
    assert results(root)["score"] == 0
    assert says in results(root)["output"]


def test_a_grader_that_fails_leaves_no_result_that_could_be_taken_for_a_score(tmp_path):
    root = unpacked(tmp_path, catalog.select(["l1.softmax_stats"]))
    (root / "results").mkdir()
    (root / "results" / "results.json").write_text('{"score": 100}')
    (root / "source" / "tests" / "test_l1_online_softmax.py").unlink()
    done = run(root)
    assert done.returncode == 2
    assert "tests/test_l1_online_softmax.py missing" in done.stderr
    assert not (root / "results" / "results.json").exists()


def test_the_command_writes_the_zip_and_says_what_to_do(tmp_path):
    small_repository(tmp_path)
    for name in ("LICENSE", "requirements.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "tests" / "conftest.py").write_text("")
    said = grade_py(tmp_path, "autograder a.zip l4", 0)
    assert "a.zip grades l4." in said
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {"setup.sh", "run_autograder", "tests/test_l4_merge_states.py"} <= set(archive.namelist())
    assert "name a file in a folder that is there" in grade_py(tmp_path, "autograder no/a.zip l4", 2)
    assert "no lesson" in grade_py(tmp_path, "autograder a.zip l9", 2)
    assert "l4 is no name of a zip" in grade_py(tmp_path, "autograder l4", 2)
    assert "there is no lesson l9" in grade_py(tmp_path, f"autograder a.zip --points {bad_points(tmp_path)}", 2)


def bad_points(folder: Path) -> Path:
    """A table that names a lesson that is not there."""
    path = folder / "bad.toml"
    path.write_text("[l9]\nvalue = 1\n")
    return path
