"""JUnit XML, in the form that Jenkins, GitLab, GitHub's reporters and the schema of Ant's reports agree on.

One grade: a `testsuite` a lesson, a `testcase` a test. A class: a `testsuite` a submission, a `testcase` an exercise,
because a case a test would be hundreds of megabytes for a large class. A test that failed is a `failure`; what could
not be graded is an `error`; what was not run or not started is `skipped`. What graded code printed stands with its
failure, and at the end of its suite. Written piece by piece: a class is never held in memory.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element, SubElement, tostring

from drills.report import standing, verdict, words
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult, TestResult
from drills.report.submission import Submission

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PARTS = ("called", "got", "expected", "likely", "read")


def of_grade(grade: Grade, when: datetime.datetime | None = None) -> str:
    """The XML of one grade. when: in UTC, now if left out."""
    suites = [_lesson(grade, lesson) for lesson in grade.lessons]
    if grade.grader_error:
        suites.append(_suite("grader", [_error("grader", "the grading", grade.grader_error, "grader_failed")]))
    return "".join(_document(suites, when))


def of_class(submissions: Iterable[Submission], when: datetime.datetime | None = None) -> Iterator[str]:
    """The XML of a class in pieces, a submission at a time."""
    return _document((_submission(one) for one in submissions), when)


def _document(suites: Iterable[Element], when: datetime.datetime | None) -> Iterator[str]:
    """The counts are the suites' own: a reader adds them up, and nothing has to be counted before it is written."""
    when = when or datetime.datetime.now(datetime.timezone.utc)
    yield f"{HEAD}<testsuites>\n"
    for number, suite in enumerate(suites):
        suite.attrib |= {"id": str(number), "package": "drills", "hostname": "localhost"}
        suite.set("timestamp", when.strftime("%Y-%m-%dT%H:%M:%S"))
        yield tostring(suite, encoding="unicode") + "\n"
    yield "</testsuites>\n"


def _lesson(grade: Grade, lesson: LessonResult) -> Element:
    cases = []
    if lesson.problem:
        cases.append(_error(lesson.stem, "the file can be graded", lesson.problem.got, lesson.problem.kind))
    for exercise in lesson.exercises:
        name = f"{_short(lesson)}.{exercise.name}"
        cases += [_test(name, test) for test in exercise.tests] or [_exercise(name, "the exercise", exercise, lesson)]
    _tell_apart(cases)
    about = {"file": lesson.file, "sha256": lesson.sha256, "isolation": grade.isolation, "device": grade.device}
    printed = [f"{test.title}:\n{test.printed}" for one in lesson.exercises for test in one.tests if test.printed]
    return _suite(lesson.stem, cases, about | grade.versions, "\n".join(printed))


def _submission(submission: Submission) -> Element:
    cases = []
    grade = submission.grade
    if submission.problem or grade is None or grade.grader_error:
        reason = "; ".join(standing.problems(submission))
        cases.append(_error(submission.id, "the submission can be graded", reason, "problem"))
    else:
        for lesson, exercise in verdict.exercises(grade):
            cases.append(_exercise(submission.id, f"{_short(lesson)}.{exercise.name}", exercise, lesson))
    about = {"name": submission.name} | {f"sha256 {name}": value for name, value in submission.files.items()}
    if grade is not None:
        about |= {"isolation": grade.isolation, "device": grade.device} | grade.versions
    suite = _suite(submission.id, cases, about)
    if grade is not None and grade.seconds:  # the whole is known, though its parts are not told
        suite.set("time", f"{grade.seconds:.3f}")
    return suite


def _suite(name: str, cases: list[Element], properties: dict[str, str] | None = None, printed: str = "") -> Element:
    seconds = sum(float(case.get("time")) for case in cases)
    counts = {"tests": len(cases)}
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[attribute] = sum(case.find(tag) is not None for case in cases)
    suite = Element("testsuite", {"name": _line(name)} | {key: str(value) for key, value in counts.items()})
    suite.set("time", f"{seconds:.3f}")
    listed = SubElement(suite, "properties")
    for key, value in (properties or {}).items():
        SubElement(listed, "property", name=_line(key) or "unnamed", value=_line(value))
    suite.extend(cases)
    SubElement(suite, "system-out").text = _text(printed, 64_000)
    SubElement(suite, "system-err")
    return suite


def _test(classname: str, test: TestResult) -> Element:
    case = _case(classname, f"{test.title} [{test.level}]", test.seconds)
    if test.outcome == "failed":
        _fail(case, test.failure or Failure("failed", test.level), test.printed)
    elif test.outcome != "passed":
        SubElement(case, "skipped", message=_line(test.failure.got if test.failure else "not run"))
    return case


def _exercise(classname: str, name: str, exercise: ExerciseResult, lesson: LessonResult) -> Element:
    """A whole exercise as one case."""
    if lesson.problem:
        return _error(classname, name, lesson.problem.got, lesson.problem.kind)
    case = _case(classname, name, sum(test.seconds for test in exercise.tests))
    if exercise.state == "not started":
        SubElement(case, "skipped", message="not started")
    elif exercise.state == "missing":
        _fail(case, Failure("missing_function", "value", got=f"no function {exercise.name} in {lesson.stem}.py"))
    elif exercise.state != "passed":
        test = verdict.first_failed_test(exercise)
        _fail(case, test.failure if test and test.failure else Failure("not_run", "value", got="tests were not run"))
    return case


def _case(classname: str, name: str, seconds: float) -> Element:
    return Element("testcase", classname=_line(classname), name=_line(name), time=f"{seconds:.3f}")


def _tell_apart(cases: list[Element]) -> None:
    """Numbers cases of one name: GitLab shows only the first of them."""
    seen: Counter = Counter()
    for case in cases:
        name = case.get("classname"), case.get("name")
        seen[name] += 1
        if seen[name] > 1:
            case.set("name", f"{name[1]} ({seen[name]})")


def _error(classname: str, name: str, says: str, kind: str) -> Element:
    case = _case(classname, name, 0.0)
    SubElement(case, "error", message=_line(says), type=_line(kind)).text = _text(says)
    return case


def _fail(case: Element, failure: Failure, printed: str = "") -> None:
    message = f"{failure.level}: {failure.got or failure.kind}"
    lines = [f"{part:<9} {getattr(failure, part)}" for part in _PARTS if getattr(failure, part)]
    lines += [f"line {failure.line:<4} {failure.source.strip()}"] if failure.line else []
    lines += [f"printed\n{printed}"] if printed else []
    SubElement(case, "failure", message=_line(message), type=_line(failure.kind)).text = _text("\n".join(lines))


def _line(value: object) -> str:
    return _ILLEGAL.sub("", words.clean(value, 1000))


def _text(value: str, limit: int = 4000) -> str:
    return _ILLEGAL.sub("", words.clean_lines(value, limit))


def _short(lesson: LessonResult) -> str:
    return lesson.stem.split("_", 1)[0]
