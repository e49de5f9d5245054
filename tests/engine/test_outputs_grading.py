"""`grade.py --json --junit --gradescope --exercism --points`: checked before grading, and all of one verdict."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from repository_of_its_own import build, grade

ENGINE = Path(__file__).parent
SESSION = """
import os
from sample_grades import SCREENS

def grade(request):
    open("graded", "w").close()
    return SCREENS[os.environ["SCREEN"]]
"""


@pytest.fixture
def root(tmp_path):
    build(tmp_path)
    (tmp_path / "drills" / "session.py").write_text(SESSION)
    return tmp_path


def run(root, line, code, screen="half_done"):
    return grade(root, line, code, SCREEN=screen, PYTHONPATH=str(ENGINE))


def test_every_file_says_what_the_screen_says(root):
    (root / "p.toml").write_text("[l4.merge_state]\nvalue = 14\n")
    files = "--json g.json --junit j.xml --gradescope gs.json --exercism e.json"
    said = run(root, f"l4 {files} --points p.toml", 1)
    assert "4 of 7 exercises passed" in said
    assert " 50 of 80 points\n" in said
    assert json.loads((root / "g.json").read_text())["passed"] == 4
    assert len(ElementTree.parse(root / "j.xml").findall(".//failure")) == 7
    assert json.loads((root / "gs.json").read_text())["score"] == 50
    tree = json.loads((root / "e.json").read_text())
    assert (tree["version"], tree["status"]) == (3, "fail")


def test_without_points_the_screen_is_silent_about_them(root):
    assert "points" not in run(root, "l4 --gradescope gs.json", 1)
    assert json.loads((root / "gs.json").read_text())["score"] == 40


def test_a_file_may_be_a_pipe(root):
    said = run(root, "l4 --plain --junit /dev/stdout", 1)
    assert "<testsuites" in said


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--junit mine", "mine is a folder: name a file"),
        ("--gradescope no/where.json", "is not there"),
        ("--exercism no/where.json", "is not there"),
        ("--points no.toml", "no.toml cannot be read"),
        ("--points bad.toml", "bad.toml: there is no lesson l9"),
    ],
)
def test_what_cannot_be_written_or_read_is_said_before_grading(root, line, says):
    (root / "bad.toml").write_text("[l9]\nvalue = 1\n")
    assert says in run(root, line, 2)
    assert not (root / "graded").exists()


def test_a_grader_that_fails_scores_nothing_in_any_file(root):
    said = run(root, "l4 --junit j.xml --gradescope gs.json --exercism e.json --points p.toml", 2, "grader_failed")
    assert "p.toml cannot be read" in said
    run(root, "l4 --junit j.xml --gradescope gs.json --exercism e.json", 3, "grader_failed")
    assert (
        ElementTree.parse(root / "j.xml").find(".//error").get("message").startswith("the worker could not be started")
    )
    assert json.loads((root / "gs.json").read_text())["score"] == 0
    assert json.loads((root / "e.json").read_text())["status"] == "error"
