"""What the scorecard sends a learner to, where the golden screens do not show it."""

import pytest

from drills.report.console import open_console
from drills.report.model import ExerciseResult, Grade, LessonResult
from drills.report.next_step import next_lines


@pytest.mark.parametrize(
    ("isolation", "says"),
    [("landlock", "compare yours with solutions/l4_merge_states.py"), ("none", "with --debug nothing counts")],
)
def test_after_a_debug_run_one_grades_again(isolation, says):
    passed = [ExerciseResult("merge_state", "passed")]
    lesson = LessonResult("l4_merge_states", "", "mine/l4_merge_states.py", "", passed)
    grade = Grade("mine/", "cpu", isolation=isolation, lessons=[lesson])
    assert says in "\n".join(line.plain for line in next_lines(grade, open_console(), frozenset({"show"})))
