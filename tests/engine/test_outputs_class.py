"""Everything a batch leaves behind: statistics, causes, files, the end screen; flat memory for a large class."""

import argparse
import csv
import io
import json
import re
import tracemalloc

import pytest
from sample_class import CLASS, L4, NO_GRADE, all_passed, class_again, one, result
from sample_grades import HOSTILE, OUT_OF_BOUNDS, SYNTAX, WRONG_VALUE, failed, grade, lesson, passed, stopped

from drills import catalog
from drills.batch.place import Place
from drills.errors import WrongUse
from drills.lessons.base import Mistake
from drills.report import batch_screen, kinds, outputs, standing, words
from drills.report.causes import Cause, causes, short
from drills.report.console import open_console
from drills.report.model import Failure, LessonResult, TestResult
from drills.report.points import Points
from drills.report.statistics import Statistics, Tally
from drills.report.submission import Submission
from drills.run import load_facts


def statistics(*submissions):
    found = Statistics()
    for submission in submissions:
        found.add(submission, Points())
    return found


@pytest.mark.parametrize(
    ("says", "phrase"),
    [
        ("The max was not subtracted: exp overflows from 88.8 on. Take exp(x - m).", "the max was not subtracted"),
        ("exp was used where s is in base 2: the weights are apart.", "exp was used where s is in base 2"),
        ("T was rounded down. T = ceil(L / N).", "T was rounded down"),
        ("(-inf) - (-inf) is NaN. Subtract 0.", "(-inf) - (-inf) is NaN"),
        ("A row with no score gave log(1e-12).", "a row with no score gave log(1e-12)"),
        ("FlashInfer's s is natural here. Divide.", "FlashInfer's s is natural here"),
        ("no: it is", "no: it is"),
        ("Where all are empty, 0 / 0 is NaN. Shift.", "where all are empty, 0 / 0 is NaN"),
        ("One sentence without an end", "one sentence without an end"),
        ("", ""),
    ],
)
def test_a_mistake_in_a_phrase(says, phrase):
    assert short(says) == phrase


def mistakes():
    """Every mistake of every lesson."""
    return [one for entry in catalog.lessons() if not entry.missing for one in load_facts(entry).mistakes]


def test_every_mistake_of_the_lessons_reads_well_as_a_phrase():
    found: list[Mistake] = mistakes()
    assert len(found) > 100
    for mistake in found:
        phrase = short(mistake.says)
        assert 8 <= len(phrase) <= 120, mistake.id
        assert not phrase.endswith((".", ":", ",")), mistake.id
        assert ". " not in phrase, mistake.id


def test_every_kind_that_the_grader_names_has_a_phrase():
    from drills.judge.failures import DEATHS, MEMORY_KINDS
    from drills.report.problems import KINDS

    for kind in {*MEMORY_KINDS, *DEATHS, *KINDS.values()}:
        assert kind in kinds.PHRASES, kind
    assert kinds.phrase("compile_died") == "a kernel does not compile for a GPU"
    assert kinds.phrase("some_new_kind") == "some new kind"


def test_a_cause_counts_once_a_submission_in_however_many_tests():
    made = grade(
        lesson(L4, failed("merge_state", WRONG_VALUE, "a", others=5), failed("merge_states", WRONG_VALUE, "b")),
    )
    assert causes(made) == {Cause(L4, "exp was used where s is in base 2", mistake=True)}
    found = statistics(*(one(str(number), "x", failed("merge_state", WRONG_VALUE, "a", 3)) for number in range(31)))
    assert found.top() == [(Cause(L4, "exp was used where s is in base 2", mistake=True), 31)]


def test_a_failure_without_a_cause_beside_one_that_has_one_is_not_counted():
    unknown = Failure("wrong_value", "value", got="x")
    tests = [
        TestResult(str(n), "t", "merge_state", "value", "failed", one) for n, one in enumerate([unknown, WRONG_VALUE])
    ]
    made = grade(lesson(L4, result("merge_state", tests, value="failed")))
    assert [cause.says for cause in causes(made)] == ["exp was used where s is in base 2"]


def test_what_is_not_explained_is_counted_but_not_shown_as_common():
    unknown = Failure("wrong_value", "value", got="x")
    found = statistics(*(one(str(number), "x", failed("merge_state", unknown, "a")) for number in range(5)), CLASS[3])
    assert [cause.says for cause, _ in found.top()][0] == "wrong values, no known cause"
    assert all(cause.explained for cause, _ in batch_screen.top_causes(found))
    assert batch_screen.top_causes(found)[0][0].says == "an access outside a tensor"


def test_words_of_a_student_never_become_a_cause():
    says = {cause.says for cause in causes(grade(lesson(L4, failed("merge_state", HOSTILE, "t"))))}
    assert says == {"an exception was raised"}


@pytest.mark.parametrize(
    ("index", "stands"), [*enumerate(["passed", "partly", "nothing", "partly", "nothing", "not started", "nothing"])]
)
def test_how_a_submission_stands(index, stands):
    assert standing.standing(CLASS[index]) == stands


def test_how_half_graded_submissions_stand():
    half = Submission(
        "x", "x", grade=grade(lesson("l1_online_softmax"), lesson(L4, stopped("merge_state"), problem=SYNTAX))
    )
    assert standing.standing(half) == "not started"
    full = Submission("x", "x", grade=grade(lesson(L4, *(passed(name) for _, name in COLUMNS))))
    assert standing.standing(full) == "passed"
    full.grade.lessons.append(lesson("l1_online_softmax", problem=SYNTAX))
    assert standing.standing(full) == "partly"
    assert standing.problems(full) == ["l1_online_softmax: syntax error, line 14: unmatched ')'"]


COLUMNS = [
    (L4, name) for name in ("merge_state", "merge_state_in_place", "merge_states", "variable_length_merge_states")
]


def test_statistics_count_right():
    tree = statistics(*CLASS).tree(Points())
    assert tree["submissions"] == 10
    assert tree["standings"] == {
        "passed": 1, "partly": 2, "nothing": 3, "not started": 1, "could not be graded": 3
    }  # fmt: skip
    assert sum(tree["standings"].values()) == 10
    assert (tree["median_seconds"], tree["median_points"], tree["points_possible"]) == (2.0, 0.0, 40.0)
    first = tree["exercises"][0]
    assert first["states"] == {"failed": 4, "not graded": 3, "not started": 1, "passed": 2}
    assert first["levels"]["edge"] == {"blocked": 2, "failed": 1, "passed": 3}
    assert first["mean_points"] == round((10 + 10 + 0 + 6 + 0 + 0 + 0) / 7, 2)
    head = next(test for test in first["tests"] if test["title"] == "head size 80")
    assert (head["level"], head["failed"]) == ("memory", 1)
    assert tree["causes"][0] == {
        "lesson": L4, "says": "exp was used where s is in base 2", "mistake": True, "submissions": 2, "of": 6
    }  # fmt: skip
    assert tree["isolation"] == {"bwrap": 8}
    assert tree["with_refused_files"] == 1


@pytest.mark.parametrize("first", ["passed", "failed"])
def test_a_test_is_called_by_its_own_name_where_one_of_a_class_was_failed_for_something_else(first):
    """A call that was made again, say; whichever of the two submissions comes first."""
    told = [("passed", "any strides"), ("failed", "a call of an earlier test once more, with other values")]
    tally = Tally()
    for outcome, title in sorted(told, key=lambda one: one[0] != first):
        test = TestResult("l4::test_any_strides", title, "merge_states", "memory", outcome)
        tally.add(result("merge_states", [test]), 0)
    assert tally.titles == {"l4::test_any_strides": ("any strides", "memory")}
    assert tally.tests["l4::test_any_strides"] == {"passed": 1, "failed": 1}


def test_columns_stand_in_the_order_of_the_lessons_whoever_comes_first():
    l10 = LessonResult("l10_late", "Late", "l10_late.py", exercises=[passed("z")])
    late = Submission("x", "x", grade=grade(l10, lesson(L4, passed("merge_state"))))
    assert [stem for stem, _ in statistics(late).columns] == [L4] * 4 + ["l10_late"]


def write(tmp_path, submissions=class_again, **options):
    out = tmp_path / "out"
    return out, outputs.write_all(out, submissions, outputs.Options(**options))


def test_every_output_is_there_and_can_be_read(tmp_path):
    out, found = write(tmp_path)
    assert found.submissions == 10
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    ids = [one.id for one in CLASS]
    expected = ["gradebook.csv", "junit.xml", "problems.txt", "statistics.json", "statistics.md"]
    expected += [f"reports/{id}.md" for id in ids] + [f"gradescope/{id}.json" for id in ids]
    assert names == sorted(expected)
    assert (out / "gradebook.csv").read_bytes().startswith(b"\xef\xbb\xbfsubmission,")
    with open(out / "gradebook.csv", encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.reader(file))) == 11
    assert json.loads((out / "statistics.json").read_text())["submissions"] == 10
    problems = (out / "problems.txt").read_text().splitlines()
    assert problems[:2] == [
        "hal: l4_merge_states: syntax error, line 14: unmatched ')'", "no-files~0a: there is no file of a lesson"
    ]  # fmt: skip
    assert all(line.isprintable() for line in problems)


def test_what_lay_beside_the_submissions_is_listed_first(tmp_path):
    outputs.write_all(tmp_path, class_again, not_taken=["x.py\x1b[2J: lies beside", "pipe: is a pipe"])
    lines = (tmp_path / "problems.txt").read_text().splitlines()
    assert lines[:2] == ["not taken: x.py: lies beside", "not taken: pipe: is a pipe"]
    assert lines[2].startswith("hal: l4_merge_states: syntax error")


def test_what_a_problem_says_already_is_not_listed_again():
    large, other = "l4_merge_states.py: larger than 1024 KiB", "l5_cascade.py: a pipe"
    submission = Submission("max", "max", refused=(large, other), problem=f"what is there was not taken: {large}")
    assert list(outputs.problem_lines(submission)) == [
        f"max: what is there was not taken: {large}\n", f"max: not taken: {other}\n"
    ]  # fmt: skip


def test_of_a_submission_that_is_gone_nothing_stays(tmp_path):
    place = Place(tmp_path / "out")
    place.prepare()
    outputs.write_all(place.root, class_again)
    place.forget("ada")
    assert not [path for path in place.root.rglob("*") if path.name.startswith("ada.")]
    assert (place.root / "reports" / "bob.md").exists()


def contents(out):
    """Every file under it and its bytes, without the time at which the JUnit file was written."""
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return {path: re.sub(rb'timestamp="[^"]*"', b"", data) for path, data in files.items()}


def test_a_second_time_gives_the_same_bytes(tmp_path):
    out, _ = write(tmp_path)
    first = contents(out)
    write(tmp_path)
    assert contents(out) == first


def test_an_empty_class_leaves_every_file(tmp_path):
    out, found = write(tmp_path, lambda: iter(()), columns=tuple(COLUMNS))
    assert found.submissions == 0
    assert (out / "gradebook.csv").read_text(encoding="utf-8-sig").count("\n") == 1
    assert "l4.merge_states points" in (out / "gradebook.csv").read_text(encoding="utf-8-sig")
    assert (out / "problems.txt").read_text() == ""
    assert (out / "junit.xml").read_text().endswith("</testsuites>\n")


def test_a_name_never_leads_out_of_the_folder(tmp_path):
    write(tmp_path, lambda: iter([one("../../evil", "x"), one("..", "x"), one("a/b", "x"), one("/etc/x", "x")]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert len(list((tmp_path / "out" / "reports").iterdir())) == 4


def test_what_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(WrongUse, match="out.* cannot be written"):
        write(tmp_path)


def test_canvas_is_filled_with_the_batch(tmp_path):
    export = tmp_path / "e.csv"
    export.write_text('Student,ID,SIS Login ID,Section,Merge (1)\n    Points Possible,,,,40\n"Löve, Ada",7,ada,A,\n')
    options = outputs.options_of(argparse.Namespace(points=None, canvas=export, assignment=""), {L4: ["merge_state"]})
    out, _ = write(tmp_path, export=options.export, assignment=options.assignment, columns=options.columns)
    assert (out / "canvas.csv").read_text().endswith('"Löve, Ada",7,ada,A,40\n')
    assert "1 score written to the column Merge (1)" in (out / "canvas.txt").read_text()


def test_options_are_checked_before_anything_is_graded(tmp_path):
    parser = argparse.ArgumentParser()
    outputs.add_arguments(parser)
    for line, says in (
        (["--assignment", "x"], "give --canvas EXPORT.csv too"),
        (["--canvas", str(tmp_path / "no.csv")], "cannot be read"),
        (["--points", str(tmp_path / "no.toml")], "cannot be read"),
    ):
        with pytest.raises(WrongUse, match=says):
            outputs.options_of(parser.parse_args(line), {})
    assert outputs.options_of(parser.parse_args([]), {L4: ("a",)}) == outputs.Options(columns=((L4, "a"),))


def screen(found, width=80, plain=True):
    console = open_console(file=io.StringIO(), plain=plain)
    console.width = width
    for line in batch_screen.summary_lines(found, "out/", console):
        console.print(line, soft_wrap=True)
    return console.file.getvalue()


def test_the_end_screen_says_how_the_class_stands_and_what_went_wrong_most():
    assert screen(statistics(*CLASS)) == (
        " passed 1 - partly 2 - nothing 3 - not started 1\n"
        "   could not be graded 3 (see out/problems.txt)\n"
        " Most common: exp was used where s is in base 2 (2)\n"
        "   an access outside a tensor (1) - an exception was raised (1)\n"
        " Gradebook out/gradebook.csv - reports in out/reports/\n"
    )


def test_the_end_screen_says_that_something_beside_the_submissions_was_left_out():
    console = open_console(file=io.StringIO(), plain=True)
    lines = [str(line) for line in batch_screen.summary_lines(statistics(*CLASS), "out", console, left_out=True)]
    assert lines[2] == " Files beside the submissions were left out: see out/problems.txt"
    assert not any("left out" in line for line in screen(statistics(*CLASS)).splitlines())


def test_the_end_screen_of_a_class_without_trouble_is_short():
    assert screen(statistics(all_passed("a", "a"))).splitlines()[0] == " passed 1 - partly 0 - nothing 0"
    console = open_console(file=io.StringIO(), plain=True)
    assert "isolation bwrap" in str(batch_screen.summary_lines(Statistics(), "out", console, "bwrap")[-1])
    assert "Most common" not in screen(statistics(all_passed("a", "a")))
    assert screen(Statistics()).splitlines()[0] == " passed 0 - partly 0 - nothing 0"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_end_screen_fits(width):
    mistake = Failure("wrong_value", "value", likely="x" * 300, mistake="m")
    found = statistics(*CLASS, *(one(str(n), "x", failed("merge_state", mistake, "t")) for n in range(4)))
    assert all(len(line) <= width for line in screen(found, width).splitlines())


def test_a_long_cause_is_cut_at_a_comma_on_the_screen():
    says = "The running output was not rescaled when the max moved, though l was. Both are."
    mistake = Failure("wrong_value", "value", likely=says, mistake="m")
    said = " ".join(screen(statistics(one("x", "x", failed("merge_state", mistake, "t")))).split())
    assert "Most common: the running output was not rescaled when the max moved (1)" in said
    endless = Failure("wrong_value", "value", likely="a, " + "x" * 80, mistake="m")
    assert "x... (1)" in screen(statistics(one("x", "x", failed("merge_state", endless, "t"))))


def test_of_several_lessons_the_causes_name_theirs():
    made = grade(lesson("l1_online_softmax", failed("softmax", OUT_OF_BOUNDS, "t")), lesson(L4, passed("merge_state")))
    assert "l1 an access outside a tensor (1)" in screen(statistics(Submission("x", "x", grade=made)))


def large(count):
    """A class of so many, made one at a time."""
    tests = [
        TestResult(f"t{number}", f"test {number}", "merge_state", "value", "failed", WRONG_VALUE) for number in range(8)
    ]
    for number in range(count):
        yield (
            one(f"s{number}", f"Student {number}", result("merge_state", list(tests), value="failed"))
            if number % 9
            else NO_GRADE
        )


def peak(tmp_path, count):
    """Bytes that writing every output of a class of so many takes at most."""
    tracemalloc.start()
    outputs.write_all(tmp_path / str(count), lambda: large(count))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_the_class(tmp_path):
    peak(tmp_path, 10)  # imports and caches
    few, many = peak(tmp_path, 20), peak(tmp_path, 120)
    assert many - few < 100 * 2_000, (few, many)  # a submission held in memory takes some 10,000 bytes


def test_a_name_is_cleaned_wherever_it_goes(tmp_path):
    out, _ = write(tmp_path, lambda: iter([one("x", "\x1b[2J\u202eevil\x00name")]))
    for path in out.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8")
            assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text, path.name
    assert words.clean("evilname") in (out / "reports" / "x.md").read_text()
