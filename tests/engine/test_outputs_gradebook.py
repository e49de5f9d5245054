"""The gradebook and the Canvas import, read with the csv module."""

import csv
import io

import pytest
from sample_class import CLASS, EVIL, L4, all_passed, class_again, one
from sample_grades import NAMES, WRONG_VALUE, failed, grade, lesson, passed

from drills.errors import WrongUse
from drills.report.formats import canvas, canvas_file, gradebook
from drills.report.points import Points
from drills.report.submission import Submission

COLUMNS = [(L4, name) for name in NAMES[L4][1]]
POSSIBLE = 4000


def book(submissions, columns=COLUMNS, points=None):
    """The gradebook, as a spreadsheet reads it: a dict a line."""
    out = io.StringIO(newline="")
    gradebook.write(out, submissions, columns, points or Points())
    return list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))


def test_one_line_a_submission_in_their_order():
    assert [line["submission"] for line in book(CLASS)] == [one.id for one in CLASS]
    assert book(CLASS) == book(class_again())


def test_the_columns_are_the_same_for_everyone_and_named_after_exercises():
    first = book(CLASS)[0]
    assert list(first)[:7] == list(gradebook.FIXED)
    assert list(first)[7:9] == ["l4.merge_state points", "l4.merge_state result"]
    assert list(first)[-3:] == list(gradebook.LAST)
    assert len(first) == 7 + 2 * 4 + 3
    assert all(None not in line and None not in line.values() for line in book(CLASS))


@pytest.mark.parametrize(
    ("index", "standing", "points", "passed_", "result"),
    [
        (0, "passed", "40", "4", "passed"),
        (1, "partly", "10", "1", "failed at value"),
        (2, "nothing", "0", "0", "not started"),
        (3, "partly", "12", "0", "failed at memory"),
        (4, "nothing", "0", "0", "no such function"),
        (5, "not started", "0", "0", "not started"),
        (6, "nothing", "0", "0", "not started"),
        (7, "could not be graded", "0", "0", "not graded"),
        (8, "could not be graded", "0", "0", "not graded"),
        (9, "could not be graded", "0", "0", "not graded"),
    ],
)
def test_how_each_stands(index, standing, points, passed_, result):
    line = book(CLASS)[index]
    assert (line["standing"], line["points"], line["points possible"]) == (standing, points, "40")
    assert (line["exercises passed"], line["exercises"]) == (passed_, "4")
    assert line["l4.merge_states result"] == result


def test_the_points_of_the_exercises_add_up():
    for line in book(CLASS):
        assert float(line["points"]) == sum(float(line[name]) for name in line if name.endswith(" points"))


def test_an_instructors_points_are_used():
    line = book(CLASS, points=Points(own={(L4, "merge_state"): {"value": 50}}))[1]
    assert (line["points"], line["points possible"]) == ("0.5", "30.5")


def test_names_keep_their_letters_and_are_no_formulas():
    lines = book(CLASS)
    assert lines[0]["name"] == "Ada Löve"
    assert lines[4]["name"].startswith("'=HYPERLINK(")
    assert "\u202e" not in lines[4]["name"]


def test_why_it_could_not_be_graded_is_in_the_last_column():
    assert book(CLASS)[7]["problem"] == "l4_merge_states: syntax error, line 14: unmatched ')'"
    assert book(CLASS)[8]["problem"] == "there is no file of a lesson"
    assert book([Submission("x", "x")])[0]["problem"] == "there is no grade and no reason: grade it again with --again"


def test_an_empty_class_is_a_header():
    assert book([]) == []
    assert book(CLASS, columns=[])[0]["points possible"] == "0"


EXPORT = """Student,ID,SIS User ID,SIS Login ID,Section,Homework 1 (111),Merge (222),Current Score,Final Score
,,,,,,Manual Posting,,
"    Points Possible",,,,,10.00,40.00,(read only),(read only)
"Löve, Ada",101,S1,zz@uni.example,A,9.00,,90,90
"Smith, Robert",102,S2,bob@uni.example,A,"9.00",,90,90
"Cat, C",103,cat,c.c,A,9.00,12.00,90,90
"Fay, F",104,S9,fay,"A and B",9.00,EX,90,90
"Nobody, N",105,S7,nob,A,9.00,7.00,90,90
"Student, Test",106,,2b4f0a,A,,,,
"""
DAN = one("dan", "Dan", passed("merge_state"))


def export(tmp_path, text=EXPORT, encoding="utf-8"):
    path = tmp_path / "export.csv"
    path.write_bytes(text.encode(encoding))
    return canvas_file.read(path)


def fill(tmp_path, submissions=CLASS, text=EXPORT, assignment="merge"):
    made, filled, title = canvas.fill(export(tmp_path, text), assignment, submissions, Points(), POSSIBLE)
    return list(csv.reader(io.StringIO(made.removeprefix("\ufeff"), newline=""))), filled, title, made


def test_scores_go_into_the_one_column_and_nothing_else_changes(tmp_path):
    rows, filled, title, _ = fill(tmp_path)
    before = list(csv.reader(io.StringIO(EXPORT)))
    assert title == "Merge (222)"
    changed = [(r, c) for r, row in enumerate(before) for c, value in enumerate(row) if rows[r][c] != value]
    assert changed == [(3, 6), (4, 6), (5, 6)]
    assert [row[6] for row in rows] == ["Merge (222)", "Manual Posting", "40.00", "40", "10", "0", "EX", "7.00", ""]
    assert filled.scores == 3


def test_lines_that_get_no_score_stay_byte_by_byte(tmp_path):
    lines, made = EXPORT.splitlines(keepends=True), fill(tmp_path)[3].splitlines(keepends=True)
    assert made[:3] + made[6:] == lines[:3] + lines[6:]


def test_nobody_is_dropped_in_silence(tmp_path):
    _, filled, title, _ = fill(tmp_path)
    assert filled.without_submission == ["Nobody, N", "Student, Test"]
    assert [line.split(" ")[0] for line in filled.without_student] == [
        "dan",
        "eve~00",
        "gus",
        "hal",
        "no-files~0a",
        "broken",
    ]
    assert filled.left_alone == ["Fay, F: Canvas says EX, fay (Fay) scored 0"]
    text = "\n".join(filled.lines(title))
    assert "3 scores written to the column Merge (222)" in text
    for name in ("Nobody, N", "Student, Test", "dan (Dan)", "Fay, F"):
        assert f"  {name}" in text


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("101", "x"), ("S1", "x"), ("s1", "x"), ("x", "zz@uni.example"), ("zz", "x"), ("x", "Ada Löve"),
        ("ada_love", "x"), ("x", "Löve, Ada"), ("Love-Ada", "x"), ("x", "loveada_101_987654_l4"),
        ("x", "loveada_LATE_101_987654_l4_merge_states.py"),
    ],
)  # fmt: skip
def test_a_student_is_found_by_id_login_name_or_a_canvas_download(tmp_path, id, name):
    rows, filled, _, _ = fill(tmp_path, [all_passed(id, name)])
    assert rows[3][6] == "40", filled


@pytest.mark.parametrize(
    ("id", "name"), [("10", "x"), ("ada", "x"), ("x", "love_1010_1_l4"), ("x", "_101_2_"), ("", "")]
)
def test_a_part_of_a_name_is_nobody(tmp_path, id, name):
    rows, filled, _, _ = fill(tmp_path, [all_passed(id, name)])
    assert filled.scores == 0
    assert len(filled.without_student) == 1


def test_what_fits_two_students_scores_for_neither(tmp_path):
    text = EXPORT.replace("Cat, C", "Ada Löve")
    rows, filled, _, _ = fill(tmp_path, [all_passed("x", "Ada Löve")], text)
    assert filled.scores == 0
    assert filled.without_student == ["x (Ada Löve) fits Löve, Ada, Ada Löve"]
    clash = EXPORT.replace("103,cat", "103,101")
    assert fill(tmp_path, [all_passed("101", "x")], clash)[1].scores == 0


def test_two_submissions_of_one_student_score_nothing(tmp_path):
    _, filled, _, _ = fill(tmp_path, [all_passed("101", "x"), all_passed("zz", "y")])
    assert filled.scores == 0
    assert filled.left_alone == ["Löve, Ada: 2 submissions fit"]
    assert len(filled.without_student) == 2


def test_what_could_not_be_graded_leaves_the_cell(tmp_path):
    rows, filled, _, _ = fill(tmp_path, [Submission("nob", "N", problem="no file")])
    assert rows[7][6] == "7.00"
    assert filled.left_alone == ["Nobody, N: nob (N) could not be graded"]


def test_another_number_of_points_in_canvas_is_said(tmp_path):
    assert fill(tmp_path)[1].warnings == []
    said = fill(tmp_path, text=EXPORT.replace("40.00", "100.00"))[1].warnings
    assert said[0].startswith("the assignment is worth 100.00 points in Canvas, the exercises 40:")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_the_files_own_form_is_kept(tmp_path, newline, bom, separator):
    rows = csv.reader(io.StringIO(EXPORT))
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=newline).writerows(rows)
    text = bom + out.getvalue()
    made = canvas.fill(export(tmp_path, text), "merge", CLASS, Points(), POSSIBLE)[0]
    assert made.startswith(bom + "Student")
    assert made.count(newline) == made.count("\n") == text.count(newline)
    assert f"Section{separator}Homework" in made


def test_first_and_last_name_in_columns_of_their_own(tmp_path):
    text = "LastName,FirstName,ID,SIS Login ID,Section,Merge (1)\n    Points Possible,,,,,40\nLöve,Ada,7,x,A,\n"
    assert fill(tmp_path, [all_passed("x", "Ada Löve")], text)[0][2][5] == "40"


def test_an_export_without_sis_columns_and_with_a_line_break_in_a_title(tmp_path):
    text = 'Student,ID,SIS Login ID,Section,"Merge\nstates (5)"\n    Points Possible,,,,40\n"Löve, Ada",7,x,A,\n'
    rows, _, _, made = fill(tmp_path, [all_passed("7", "y")], text, "merge states")
    assert rows[2] == ["Löve, Ada", "7", "x", "A", "40"]
    assert made.startswith('Student,ID,SIS Login ID,Section,"Merge\nstates (5)"\n')


@pytest.mark.parametrize("wanted", ["Merge (222)", "merge", " MERGE ", "222", "merge  (222)"])
def test_a_column_is_named_with_its_number_or_without(tmp_path, wanted):
    assert export(tmp_path).column(wanted) == 6


def test_the_only_assignment_needs_no_name(tmp_path):
    assert export(tmp_path, EXPORT.replace("Homework 1 (111)", "Notes").replace("10.00", "")).column("") == 6


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("", 'several assignments: choose one with --assignment: "Homework 1 (111)", "Merge (222)"'),
        ("Merg", 'no assignment "Merg": did you mean "Merge (222)"?'),
        ("Final Score", 'no assignment "Final Score": "Homework 1 (111)", "Merge (222)"'),
        ("Section", "no assignment"),
        ("ID", "no assignment"),
    ],
)
def test_a_column_that_is_not_there_is_one_line(tmp_path, wanted, says):
    with pytest.raises(WrongUse) as caught:
        export(tmp_path).column(wanted)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_columns_of_one_name_need_the_number(tmp_path):
    twice = export(tmp_path, EXPORT.replace("Homework 1 (111)", "Merge (111)"))
    with pytest.raises(WrongUse, match=r'could be "Merge \(111\)", "Merge \(222\)": give the number too'):
        twice.column("merge")
    assert twice.column("111") == 5


def test_a_read_only_column_is_never_filled(tmp_path):
    with pytest.raises(WrongUse, match="no assignment"):
        export(tmp_path, EXPORT.replace("40.00", "(read only)")).column("merge")


@pytest.mark.parametrize(
    ("text", "encoding", "says"),
    [
        ("", "utf-8", "no Canvas gradebook"),
        ("a,b,c\n1,2,3\n", "utf-8", "no Canvas gradebook"),
        ("Student,ID,Section\n", "utf-8", "no column of an assignment"),
        (EXPORT, "latin-1", "is not UTF-8"),
        (EXPORT, "utf-16", "is not UTF-8"),
        ("Student,ID,Section\n\x00\n", "utf-8", "no column|no CSV"),
    ],
)
def test_what_is_no_export_is_one_line(tmp_path, text, encoding, says):
    with pytest.raises(WrongUse, match=says):
        export(tmp_path, text, encoding).column("x")
    with pytest.raises(WrongUse, match="cannot be read"):
        canvas_file.read(tmp_path / "nowhere.csv")


def test_a_hostile_name_in_the_list_is_one_clean_line(tmp_path):
    _, filled, title, _ = fill(tmp_path, [one("e", EVIL + "\n\x1b[2J")])
    lines = filled.lines(title)
    assert all(line.isprintable() for line in lines)
    assert any(line.startswith("  e (=HYPERLINK") for line in lines)


def test_a_whole_grade_is_worth_what_the_exercises_are():
    made = Submission("x", "x", grade=grade(lesson(L4, failed("merge_state", WRONG_VALUE, "t")), level="value"))
    assert book([made])[0]["points possible"] == "40"
