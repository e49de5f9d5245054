"""JUnit XML, Gradescope's results.json and Exercism's, each against what its platform states of it."""

import datetime
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import junitparser
import pytest
from sample_class import CLASS, EVIL, L4, NOT_TRITON, all_passed, one, result
from sample_grades import SCREENS, WRONG_VALUE, failed, grade, lesson

from drills.catalog import ROOT
from drills.report.code_of_test import code_of
from drills.report.formats import exercism, gradescope, junit
from drills.report.model import Failure, LessonResult, TestResult
from drills.report.points import Points

ALLOWED = {
    # element → (attributes that must be there, attributes that may be, children)
    "testsuites": (set(), set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "id", "package", "hostname", "timestamp"},
        set(),
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"classname", "name", "time"}, set(), {"failure", "error", "skipped"}),
    "failure": ({"message", "type"}, set(), set()),
    "error": ({"message", "type"}, set(), set()),
    "skipped": ({"message"}, set(), set()),
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
"""What the schemas of Jenkins (junit-10.xsd), of Ant and of GitLab have in common."""


def check_junit(text):
    """Parses the XML, holds it to the schema, and returns the root."""
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert root.tag == "testsuites"
    for element in root.iter():
        must, may, children = ALLOWED[element.tag]
        assert must <= set(element.keys()) <= must | may, element.tag
        assert {child.tag for child in element} <= children
        assert all(value.strip() for name, value in element.items() if name in ("name", "classname"))
    assert [suite.get("id") for suite in root] == [str(number) for number in range(len(root))]
    for suite in root.iter("testsuite"):
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests")) == len(cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute)) == len(list(suite.iter(tag)))
        order = ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert [child.tag for child in suite] == order
        assert all(len(case) <= 1 for case in cases)
        assert re.fullmatch(r"[0-9]{0,3}(\.[0-9]{3})", suite.get("time"))
        assert datetime.datetime.strptime(suite.get("timestamp"), "%Y-%m-%dT%H:%M:%S")
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert len(set(names)) == len(names)
    return root


@pytest.mark.parametrize("name", SCREENS)
def test_junit_of_every_kind_of_grade_fits_the_schema(name):
    check_junit(junit.of_grade(SCREENS[name]))


def test_junit_of_a_grade_has_a_case_a_test():
    root = check_junit(junit.of_grade(SCREENS["half_done"]))
    assert [suite.get("name") for suite in root] == ["l1_online_softmax", "l4_merge_states"]
    failures = root.findall(".//failure")
    assert len(failures) == 7
    assert failures[0].get("type") == "wrong_value"
    assert failures[0].get("message") == "value: v[3, 1, 17] = 0.8123 (worst of 1,200; 1,150 are off)"
    assert "likely    exp was used where s is in base 2" in failures[0].text
    case = root.find(".//testcase[@classname='l4.merge_states']")
    assert case.get("name") == "two states merge as one [value]"


def test_junit_is_read_by_a_parser_of_its_own(tmp_path):
    file = tmp_path / "junit.xml"
    file.write_text("".join(junit.of_class(CLASS)), encoding="utf-8")
    suites = {suite.name: suite for suite in junitparser.JUnitXml.fromfile(str(file))}
    assert list(suites) == [one.id for one in CLASS]
    assert (suites["ada"].tests, suites["ada"].failures, suites["ada"].skipped) == (4, 0, 0)
    assert (suites["bob"].tests, suites["bob"].failures, suites["bob"].skipped) == (4, 1, 2)
    assert (suites["hal"].tests, suites["hal"].errors) == (4, 4)
    assert (suites["broken"].tests, suites["broken"].errors) == (1, 1)
    [case] = list(suites["no-files~0a"])
    assert case.result[0].message == "there is no file of a lesson"


def test_junit_of_a_class_has_a_case_an_exercise():
    root = check_junit("".join(junit.of_class(CLASS)))
    assert [case.get("name") for case in root[0].iter("testcase")] == [
        "l4.merge_state", "l4.merge_state_in_place", "l4.merge_states", "l4.variable_length_merge_states"
    ]  # fmt: skip
    assert [suite.get("time") for suite in root[:3]] == ["2.000", "3.000", "4.000"]


def test_junit_of_an_empty_class():
    assert list(check_junit("".join(junit.of_class([])))) == []


@pytest.mark.parametrize(
    "name", ["all_not_started", "missing_file", "grader_failed", "syntax_error", "missing_function"]
)
def test_junit_counts_nothing_as_passed_that_did_not(name):
    root = check_junit(junit.of_grade(SCREENS[name]))
    good = [case for case in root.iter("testcase") if len(case) == 0]
    assert len(good) == {"missing_function": 1}.get(name, 0)


def test_junit_holds_no_character_that_xml_forbids():
    evil = "".join(map(chr, range(0x20))) + "\ufffe\uffff\ud800 \u202e ]]> <x> & \U0001f600" + EVIL
    failure = Failure("exception", "value", evil, evil, evil, evil, "", evil, 3, evil)
    test = TestResult("t", evil, "merge_state", "value", "failed", failure, printed=evil)
    made = grade(lesson(L4, result("merge_state", [test], value="failed")), isolation=evil, device=evil)
    text = junit.of_grade(made)
    root = check_junit(text)
    assert "\U0001f600" in root.find(".//failure").text
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text)
    assert "<x>" in root.find(".//system-out").text
    assert "printed" in root.find(".//failure").text


def test_junit_has_the_time_that_it_is_given():
    when = datetime.datetime(2026, 1, 31, 12, 0, 5, tzinfo=datetime.timezone.utc)
    assert check_junit(junit.of_grade(SCREENS["race"], when))[0].get("timestamp") == "2026-01-31T12:00:05"


VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def check_gradescope(tree):
    """Holds the tree to the published specification; returns it as it is read back."""
    tree = json.loads(json.dumps(tree, allow_nan=False))
    assert isinstance(tree["score"], float) and tree["score"] >= 0
    assert tree["visibility"] in VISIBILITIES and tree["stdout_visibility"] == "hidden"
    assert {tree[key] for key in ("output_format", "test_output_format", "test_name_format")} <= FORMATS
    assert isinstance(tree["output"], str)
    assert tree.get("execution_time", 0) >= 0
    for test in tree["tests"]:
        assert set(test) == {
            "name", "number", "score", "max_score", "status", "output", "output_format", "tags", "visibility"
        }  # fmt: skip
        assert 0 <= test["score"] <= test["max_score"]
        assert test["status"] in ("passed", "failed")
        assert test["output_format"] in FORMATS and test["visibility"] in VISIBILITIES
        assert all(isinstance(tag, str) for tag in test["tags"])
        assert all(line.isprintable() for line in test["output"].split("\n"))
    assert round(100 * sum(test["score"] for test in tree["tests"])) == round(100 * tree["score"])
    numbers = [test["number"] for test in tree["tests"]]
    assert len(set(numbers)) == len(numbers)
    return tree


@pytest.mark.parametrize("name", SCREENS)
def test_gradescope_of_every_kind_of_grade_fits_the_specification(name):
    check_gradescope(gradescope.of_grade(SCREENS[name], Points()))


@pytest.mark.parametrize("one", CLASS, ids=lambda one: one.id)
def test_gradescope_of_every_submission_fits_the_specification(one):
    tree = check_gradescope(gradescope.of_submission(one, Points()))
    worth = round(sum(test["max_score"] for test in tree["tests"]))
    assert worth == (0 if one.id in ("broken", "no-files~0a") else 40)


def test_gradescope_has_a_test_a_level_with_its_points_and_message():
    tree = check_gradescope(gradescope.of_submission(CLASS[3], Points()))
    assert tree["score"] == 12
    test = next(test for test in tree["tests"] if test["name"] == "l4 merge_state: memory")
    assert (test["score"], test["max_score"], test["status"], test["number"]) == (0, 2, "failed", "1.1.3")
    assert "got       tl.load of v_a[41, 1, 80] at element 3280" in test["output"]
    assert tree["tests"][0]["status"] == "passed"
    assert tree["tests"][0]["score"] == 4
    assert tree["output"] == "0 of 4 exercises passed."


def test_gradescope_says_why_a_passed_level_does_not_count():
    test = TestResult("t", "t", "merge_state", "edge", "failed", NOT_TRITON)
    made = one("x", "x", result("merge_state", [test], edge="failed"))
    tree = check_gradescope(gradescope.of_submission(made, Points()))
    assert tree["score"] == 0
    assert tree["tests"][0]["output"] == "Passed. It does not count: the result does not come from Triton kernels."
    assert tree["tests"][0]["status"] == "failed"


def test_gradescope_says_what_was_not_taken_and_why_nothing_was_graded():
    assert gradescope.of_submission(CLASS[8], Points())["output"] == "there is no file of a lesson"
    assert "syntax error, line 14" in gradescope.of_submission(CLASS[7], Points())["output"]
    made = replace(all_passed("x", "x"), refused=("x.py is a link\x1b[2J",))
    assert gradescope.of_submission(made, Points())["output"].endswith("\nNot taken: x.py is a link")


def test_gradescope_uses_an_instructors_points():
    tree = check_gradescope(gradescope.of_grade(SCREENS["all_passed"], Points({"value": 150, "compile": 25})))
    assert tree["score"] == 7
    assert tree["extra_data"] == {"points_possible": 7.0}
    assert {test["tags"][0] for test in tree["tests"]} == {"value", "compile"}


def check_exercism(tree):
    """Holds the tree to version 3 of the interface."""
    tree = json.loads(json.dumps(tree, allow_nan=False))
    assert tree["version"] == 3
    assert tree["status"] in ("pass", "fail", "error")
    assert (tree["message"] is not None) == (tree["status"] == "error")
    assert len(tree["message"] or "") <= 65_535
    for test in tree["tests"]:
        assert {"name", "status"} <= set(test) <= {"name", "status", "message", "output", "test_code", "task_id"}
        assert test["status"] in ("pass", "fail", "error")
        assert ("message" in test) == (test["status"] != "pass")
        assert len(test.get("output", "")) <= 500
        assert isinstance(test.get("task_id", 1), int)
    bad = [test for test in tree["tests"] if test["status"] != "pass"]
    assert (tree["status"] == "pass") == (bool(tree["tests"]) and not bad)
    return tree


@pytest.mark.parametrize("name", SCREENS)
def test_exercism_of_every_kind_of_grade_fits_the_interface(name):
    tree = check_exercism(exercism.of_grade(SCREENS[name]))
    expected = {"all_passed": "pass", "on_a_gpu": "pass"}
    expected |= {"missing_file": "error", "grader_failed": "error"}
    assert tree["status"] == expected.get(name, "fail")


def test_exercism_has_an_error_and_no_test_where_nothing_could_be_run():
    tree = check_exercism(exercism.of_grade(CLASS[7].grade))
    assert tree["message"] == "l4_merge_states.py: syntax error, line 14: unmatched ')'"
    assert tree["tests"] == []
    both = check_exercism(exercism.of_grade(SCREENS["syntax_error"]))
    assert both["status"] == "fail"
    assert both["tests"][-1]["status"] == "error"


def test_exercism_links_tests_to_tasks_in_order():
    tree = check_exercism(exercism.of_grade(SCREENS["half_done"]))
    tasks = [test["task_id"] for test in tree["tests"]]
    assert tasks == sorted(tasks)
    assert set(tasks) == set(range(1, 8))
    assert tree["tests"][4] == {
        "name": "merge_state_in_place is written", "status": "fail", "message": "not started", "task_id": 5
    }  # fmt: skip
    assert tree["tests"][5]["name"] == "merge_states: two states merge as one"
    assert "likely: exp was used where s is in base 2" in tree["tests"][5]["message"]


def test_exercism_cuts_what_was_printed():
    test = TestResult("t", "t", "merge_state", "value", "passed", printed="a" * 499 + "\x1b[2J")
    long = TestResult("u", "u", "merge_state", "value", "passed", printed="a" * 501)
    tree = check_exercism(exercism.of_grade(grade(lesson(L4, result("merge_state", [test, long])))))
    assert tree["tests"][0]["output"] == "a" * 499
    assert tree["tests"][1]["output"].endswith("Output was truncated. Please limit to 500 chars")
    assert len(tree["tests"][1]["output"]) == 500


def test_exercism_shows_the_text_of_a_test():
    source = (ROOT / "tests" / "test_l4_merge_states.py").read_text()
    name = re.search(r"^def (test_\w+)", source, re.MULTILINE)[1]
    test = TestResult(f"l4_merge_states::{name}[float16]", "t", "merge_state", "value", "passed")
    tree = check_exercism(exercism.of_grade(grade(lesson(L4, result("merge_state", [test]))), code_of))
    lines = tree["tests"][0]["test_code"].splitlines()
    body = source.split(f"def {name}(", 1)[1].split("\n\n\n")[0]
    assert lines and all(line in body for line in lines)
    assert lines[-1].strip() == body.splitlines()[-1].strip()
    assert code_of(LessonResult("l99_nothing", "", ""), test) == ""
    assert code_of(LessonResult(L4, "", ""), TestResult("x::gone", "", "", "", "")) == ""


def test_a_test_without_a_failure_is_not_taken_for_passed():
    test = TestResult("t", "t", "merge_state", "value", "not run")
    made = grade(lesson(L4, result("merge_state", [test], value="blocked")))
    assert check_exercism(exercism.of_grade(made))["status"] != "pass"
    assert check_junit(junit.of_grade(made)).find(".//testcase/skipped").get("message") == "not run"
    assert check_gradescope(gradescope.of_grade(made, Points()))["score"] == 0


def test_the_first_failure_is_the_one_at_the_lowest_level_in_all_of_them():
    made = one("x", "x", failed("merge_state", WRONG_VALUE, "two states merge as one", others=2))
    text = "".join(junit.of_class([made]))
    assert check_junit(text).find(".//failure").get("message").startswith("value: v[3, 1, 17]")
    tree = gradescope.of_submission(made, Points())
    assert "also      2 more tests failed at this level" in tree["tests"][0]["output"]
