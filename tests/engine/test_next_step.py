"""What the scorecard sends a learner to, where the golden screens do not show it."""

import pytest
from sample_grades import COMPILE, NAMES, failed, gone, grade, lesson, passed
from sample_grades import test as one_test

from drills.report.console import open_console
from drills.report.first_failure import failure_lines
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult
from drills.report.next_step import next_lines


@pytest.mark.parametrize(
    ("isolation", "says"),
    [("landlock", "compare yours with solutions/l4_merge_states.py"), ("none", "with --debug nothing counts")],
)
def test_after_a_debug_run_one_grades_again(isolation, says):
    results = [ExerciseResult("merge_state", "passed")]
    alone = LessonResult("l4_merge_states", "", "mine/l4_merge_states.py", "", results)
    made = Grade("mine/", "cpu", isolation=isolation, lessons=[alone])
    assert says in "\n".join(line.plain for line in next_lines(made, open_console(), frozenset({"show"})))


def test_a_file_with_none_of_the_functions_sends_to_reset():
    left = lesson("l4_merge_states", *map(gone, NAMES["l4_merge_states"][1]))
    lines = [line.plain.strip() for line in next_lines(grade(left), open_console(), frozenset())]
    assert "python grade.py reset l4  brings the stub back" in lines


def test_without_the_solutions_one_who_passed_is_sent_to_the_list():
    whole = lesson("l4_merge_states", *map(passed, NAMES["l4_merge_states"][1]))
    shown = "\n".join(line.plain for line in next_lines(grade(whole), open_console(), frozenset({"list"})))
    assert shown == " Next   python grade.py list  shows what is left"


@pytest.mark.parametrize(
    ("likely", "read", "says"),
    [
        ("", "", True),
        ("Wrong only in row 1.", "", True),
        ("exp2 is not exp", "content/l4.md#exp2", False),
    ],
)
def test_what_the_compiler_refuses_is_said_where_nothing_else_explains_the_failure(likely, read, says):
    wrong = Failure("wrong_value", "value", "merge_state()", "1", "2", likely, read=read)
    result = failed("merge_state", wrong, "two states merge as one")
    result.tests.append(one_test("merge_state", "compiles", "compile", COMPILE))
    shown = "\n".join(line.plain for line in failure_lines(grade(lesson("l4_merge_states", result)), open_console()))
    assert ("   compile   " in shown) == says


@pytest.mark.parametrize(
    ("compiler", "says"),
    [
        (Failure("compile_error", "compile", got="no such keyword", line=27), False),
        (Failure("compile_nothing", "compile", got="no kernel was launched"), False),
        (Failure("compile_error", "compile", got="no such keyword", line=24), True),
        (Failure("compile_error", "compile", got="no such keyword", likely="write axis", line=27), True),
    ],
)
def test_an_exception_is_not_said_again_in_the_compilers_words(compiler, says):
    result = failed(
        "merge_state", Failure("exception", "value", got="TypeError: no such keyword", line=27), "two states"
    )
    result.tests.append(one_test("merge_state", "compiles", "compile", compiler))
    shown = "\n".join(line.plain for line in failure_lines(grade(lesson("l4_merge_states", result)), open_console()))
    assert ("   compile   " in shown) == says
