"""What a batch writes of a submission can be read back, whole, and nothing else is taken for it."""

import json

import pytest
import sample_grades

from drills.report import json_file, submission
from drills.report.model import Failure, Grade, LessonResult
from drills.report.submission import Submission


def a_grade():
    """One lesson with a pass, a failure, an untouched stub and a problem."""
    failure = Failure("wrong_value", "edge", "f(x[3])", "v = nan", "v = 0", "a guard", "no_guard", line=3)
    exercises = [
        sample_grades.passed("one", kernels=[{"kernel": "k", "registers": 32}], traffic=1.0),
        sample_grades.failed("two", failure, "empty", left=1),
        sample_grades.waiting("three"),
    ]
    lesson = LessonResult("l9_x", "X", "anna/l9_x.py", "ab", exercises, Failure("syntax_error", "value", got="line 1"))
    return Grade("anna/", "cpu", {"torch": "2"}, "bwrap", lessons=[lesson], seconds=1.5)


@pytest.mark.parametrize("grade", [None, a_grade()], ids=["none", "a grade"])
def test_a_submission_survives_the_way_through_json(grade):
    refused, made_with = ("FIFO: not a regular file",), {"isolation": "bwrap"}
    one = Submission("anna-1f", "Anna", {"l9_x.py": "ab"}, refused, "", grade, made_with)
    assert submission.from_tree(json.loads(json.dumps(submission.to_tree(one)))) == one


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tree: tree.pop("name"),
        lambda tree: tree.update(schema=99),
        lambda tree: tree.update(files=3),
        lambda tree: tree["grade"].update(schema=99),
        lambda tree: tree["grade"].update(lessons=[{"stem": "l9_x"}]),
        lambda tree: tree["grade"].update(unknown=1),
    ],
)
def test_a_tree_that_is_no_result_is_refused(spoil):
    tree = submission.to_tree(Submission("a", "A", grade=a_grade()))
    spoil(tree)
    with pytest.raises(ValueError, match="schema|missing"):
        submission.from_tree(tree)


def test_what_json_adds_follows_from_the_grade():
    tree = json_file.as_tree(a_grade())
    tree.update(passed=99, exit_code=0)
    assert json_file.as_tree(json_file.from_tree(tree)) == json_file.as_tree(a_grade())
