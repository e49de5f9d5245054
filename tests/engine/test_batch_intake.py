"""Which submissions are found under a folder, what is read of them, and what is refused by name."""

import os
import shutil
import socket

import pytest

from drills.batch import freeze, intake, names, taking
from drills.batch.place import Place
from drills.errors import WrongUse
from drills.source import LARGEST

L4, L5 = "l4_merge_states.py", "l5_cascade.py"


def put(path, data=b"x = 1\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found(folder, lessons=(L4, L5)):
    return intake.find(folder, lessons)


def taken(folder, lessons=(L4, L5)):
    """Name → what was taken of it."""
    return {one.name: taking.take(folder, one, lessons) for one in found(folder, lessons)[0]}


def test_a_folder_with_a_lessons_file_is_a_submission(tmp_path):
    put(tmp_path / "anna" / L4, b"a = 1\n")
    put(tmp_path / "bob" / "notes.txt")
    put(tmp_path / "README.md")
    got = taken(tmp_path)
    assert list(got) == ["anna", "bob"]
    assert got["anna"].files == {L4: b"a = 1\n"} and got["anna"].problem == ""
    assert got["bob"].files == {} and "none of the files asked for" in got["bob"].problem
    assert got["bob"].problem.endswith(f"{L4}, {L5}; there is notes.txt")


def test_what_lies_there_in_place_of_the_lessons_file_is_named(tmp_path):
    for name in ("L4.py", "a.zip", "b.zip", "c.zip", ".DS_Store"):
        put(tmp_path / "anna" / name)
    (tmp_path / "bob").mkdir()
    got = taken(tmp_path, (L4,))
    assert got["anna"].problem == f"none of the files asked for is there: {L4}; there is L4.py, a.zip, b.zip, 1 more"
    assert got["bob"].problem == f"none of the files asked for is there: {L4}; the folder is empty"


def test_what_somebody_may_take_for_a_submission_gets_a_line(tmp_path):
    put(tmp_path / "anna" / L4)
    for folder in ("..dots", ".hidden", ".git", "__MACOSX"):
        put(tmp_path / folder / L4)
    for name in (f".eve__{L4}", f"._anna__{L4}", "zoe.zip", "bob__l4_merge_states (1).py", "max__l4.py", "notes.txt",
                 "kim__l1_online_softmax.py", ".DS_Store"):  # fmt: skip
        put(tmp_path / name)
    ones, refused = found(tmp_path, (L4,))
    assert [one.name for one in ones] == ["anna"]
    assert refused == [
        "..dots: its name begins with a dot: give it another",
        f".eve__{L4}: its name begins with a dot: give it another",
        ".hidden: its name begins with a dot: give it another",
        "bob__l4_merge_states (1).py: has another name than the files asked for",
        "max__l4.py: has another name than the files asked for",
        "zoe.zip: an archive, which is not unpacked",
        "notes.txt: not named as the files asked for",
        "kim__l1_online_softmax.py: of lessons that are not graded here",
    ]


def test_files_that_nobody_takes_for_a_submission_share_a_line_for_their_reason(tmp_path):
    put(tmp_path / "anna" / L4)
    put(tmp_path / "late.zip")
    for number in range(1000):
        put(tmp_path / f"student{number:03}_{L5}")
    for name in ("roster.csv", "Report of Bob\x1b[2J.pdf", ".graded", "Thumbs.db"):
        put(tmp_path / name)
    archive, names_differ, other_lesson = found(tmp_path, (L4,))[1]
    assert archive == "late.zip: an archive, which is not unpacked"
    assert names_differ == ".graded, Report of Bob.pdf, roster.csv: not named as the files asked for"
    assert other_lesson.startswith(f"student000_{L5}, student001_{L5}, ")
    assert other_lesson.endswith(" and 990 more: of lessons that are not graded here")
    assert len(other_lesson) < 350


def test_what_nobody_takes_for_a_submission_is_told_after_a_thousand_others_too(tmp_path):
    for number in range(intake.MOST_REFUSED + 1):
        put(tmp_path / f"{number}.zip")
    put(tmp_path / "notes.txt")
    refused = found(tmp_path)[1]
    assert refused[-2:] == ["and more", "notes.txt: not named as the files asked for"]


def test_what_begins_with_a_dot_is_no_submission_whatever_it_is(tmp_path):
    put(tmp_path / "anna" / L4)
    (tmp_path / ".link").symlink_to(tmp_path / "anna")
    os.mkfifo(tmp_path / ".pipe")
    ones, refused = found(tmp_path)
    assert [one.name for one in ones] == ["anna"]
    assert [line.partition(":")[0] for line in refused] == [".link", ".pipe"]


def test_a_whole_repository_is_looked_into(tmp_path):
    put(tmp_path / "anna" / "mine" / L4, b"deep\n")
    put(tmp_path / "anna" / L5, b"top\n")
    put(tmp_path / "anna" / "mine" / L5, b"not this one\n")
    got = taken(tmp_path)["anna"]
    assert got.files == {L4: b"deep\n", L5: b"top\n"}
    assert got.refused == [f"mine/{L5}: the {L5} above it was graded"]


def test_files_that_begin_alike_are_a_submission(tmp_path):
    put(tmp_path / f"anna__{L4}", b"4\n")
    put(tmp_path / f"anna__{L5}", b"5\n")
    put(tmp_path / "doejane_123_456_l4_merge_states.py", b"first\n")
    put(tmp_path / "doejane_123_456_l4_merge_states-2.py", b"last\n")
    put(tmp_path / "doejane_123_456_l4_merge_states-1.py", b"second\n")
    got = taken(tmp_path)
    assert got["anna"].files == {L4: b"4\n", L5: b"5\n"}
    assert got["doejane_123_456"].files == {L4: b"last\n"}
    assert sum("handed in again" in line for line in got["doejane_123_456"].refused) == 2


def test_files_that_canvas_numbers_one_by_one_are_one_submission_of_the_student(tmp_path):
    put(tmp_path / f"doejane_123_4567_{L4}", b"4\n")
    put(tmp_path / "doejane_123_4568_l5_cascade-1.py", b"5\n")
    put(tmp_path / f"roeann_LATE_124_4569_{L4}", b"4\n")
    got = taken(tmp_path)
    assert list(got) == ["doejane_123_4567", "roeann_LATE_124_4569"]
    assert got["doejane_123_4567"].files == {L4: b"4\n", L5: b"5\n"}


def test_numbers_that_may_be_no_files_of_one_student_keep_submissions_apart(tmp_path):
    put(tmp_path / f"group_3_20261_{L4}", b"4\n")
    put(tmp_path / f"group_3_20262_{L5}", b"5\n")
    put(tmp_path / f"group_3_20263_{L5}", b"5\n")
    assert list(taken(tmp_path)) == ["group_3_20261", "group_3_20262", "group_3_20263"]


def test_a_folder_goes_before_files_of_the_same_name(tmp_path):
    put(tmp_path / "anna" / L4, b"folder\n")
    put(tmp_path / f"anna_{L4}", b"file\n")
    assert taken(tmp_path)["anna"].files == {L4: b"folder\n"}
    assert "there is a folder anna too" in found(tmp_path)[1][0]


def test_what_is_no_regular_file_is_refused_by_name(tmp_path):
    secret = put(tmp_path / "elsewhere" / "secret", b"secret\n")
    subs = tmp_path / "subs"
    put(subs / "link" / "own.py")
    (subs / "link" / L4).symlink_to(secret)
    (subs / "pipe").mkdir()
    os.mkfifo(subs / "pipe" / L4)
    (subs / "folder" / L4).mkdir(parents=True)
    (subs / "socket").mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        here = os.open(subs / "socket", os.O_RDONLY)
        one.bind(f"/proc/self/fd/{here}/{L4}")  # a socket's path has a length limit
        os.close(here)
        got = taken(subs)
    assert {name: one.files for name, one in got.items()} == dict.fromkeys(got, {})
    assert got["link"].refused == [f"{L4}: a link, which is not followed"]
    assert got["pipe"].refused == [f"{L4}: a pipe"]
    assert "a folder" in got["folder"].refused[0] or "folder" in got["folder"].refused[0]
    assert got["socket"].refused and L4 in got["socket"].refused[0]
    assert all("was not taken" in one.problem for one in got.values())
    assert got["pipe"].problem == f"what is there was not taken: {L4}: a pipe"


def test_a_link_to_a_folder_is_a_submission_that_is_not_graded(tmp_path):
    put(tmp_path / "real" / L4)
    (tmp_path / "subs").mkdir()
    (tmp_path / "subs" / "eve").symlink_to(tmp_path / "real")
    put(tmp_path / "subs" / "ok" / L4)
    os.mkfifo(tmp_path / "subs" / "pipe")
    ones, refused = found(tmp_path / "subs")
    assert [(one.name, bool(one.problem)) for one in ones] == [("eve", True), ("ok", False)]
    assert refused == ["pipe: a pipe"]


def test_a_link_in_place_of_mine_is_not_followed(tmp_path):
    put(tmp_path / "victim" / L4)
    put(tmp_path / "subs" / "eve" / "x.txt")
    (tmp_path / "subs" / "eve" / "mine").symlink_to(tmp_path / "victim")
    got = taken(tmp_path / "subs")["eve"]
    assert not got.files and got.refused == ["mine: a link, which is not followed"]


@pytest.mark.parametrize(
    "name",
    [b"line\nbreak", b"\x1b[31mred", b"no-utf8-\xff", "turned\u202e".encode(), b"x" * 200, b"blank "],
    ids=["newline", "escape", "bytes", "bidi", "long", "blank"],
)
def test_an_odd_name_is_said_and_the_rest_goes_on(tmp_path, name):
    folder = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(folder)
    put(tmp_path / "anna" / L4)
    ones = {one.name: one.problem for one in found(tmp_path)[0]}
    assert ones["anna"] == "" and ones[os.fsdecode(name)]
    shown = names.shown(os.fsdecode(name))
    assert shown and shown.isprintable() and len(shown) <= names.LONGEST


def test_a_file_that_is_too_large_is_refused(tmp_path):
    put(tmp_path / "a" / L4, b"#" * (LARGEST + 1))
    put(tmp_path / "b" / L4, b"#" * LARGEST)
    got = taken(tmp_path)
    assert got["a"].refused == [f"{L4}: larger than 1024 KiB"]
    assert len(got["b"].files[L4]) == LARGEST


def test_a_submission_cannot_fill_the_list_of_what_is_refused(tmp_path):
    put(tmp_path / "a" / L4)
    for number in range(100):
        (tmp_path / "a" / f"link{number}").symlink_to("/etc/passwd")
    got = taken(tmp_path)["a"]
    assert len(got.refused) == taking.MOST_REFUSED + 1 and got.refused[-1] == "and more"
    assert got.files


def test_identities_are_safe_file_names_and_never_the_same():
    raw = ["anna", "Anna", "anna b", "anna  b", "anna/b", "ann\u00e4", "..", "-x", "a" * 41, "a" * 42, "x~1", "日本"]
    made = [names.identity(one) for one in raw]
    assert len(set(made)) == len(raw)
    assert made[0] == "anna"
    assert all(one[0].isalnum() and set(one) <= set("~-_") | set(map(chr, range(48, 123))) for one in made)
    assert all(len(one) <= 61 for one in made)


def test_shards_part_the_class_and_depend_on_the_name_alone():
    everybody = [f"student {number}" for number in range(3000)]
    parts = [[one for one in everybody if names.shard(one, 8) == part] for part in range(1, 9)]
    assert sorted(sum(parts, [])) == sorted(everybody)
    assert all(300 < len(part) < 450 for part in parts)
    assert names.shard("anna", 1) == 1


def test_what_is_frozen_stays_as_it_was(tmp_path):
    graded = put(tmp_path / "subs" / "anna" / L4, b"before\n")
    place = Place(tmp_path / "out")
    place.prepare()
    assert freeze.freeze(tmp_path / "subs", place, (L4,)).identities == ["anna"]
    graded.write_bytes(b"after\n")
    assert (place.frozen / "anna" / L4).read_bytes() == b"before\n"
    assert place.secret.stat().st_mode & 0o777 == 0o700


def test_results_of_another_class_are_not_thrown_away(tmp_path):
    put(tmp_path / "one" / "anna" / L4)
    put(tmp_path / "two" / "bob" / L4)
    place = Place(tmp_path / "out")
    place.prepare()
    freeze.freeze(tmp_path / "one", place, (L4,))
    with pytest.raises(WrongUse, match="results of other submissions"):
        freeze.freeze(tmp_path / "two", place, (L4,))
    put(tmp_path / "two" / "anna" / L4)
    assert freeze.freeze(tmp_path / "two", place, (L4,)).identities == ["anna", "bob"]


def test_a_folder_of_late_submissions_alone_does_not_throw_the_others_away(tmp_path):
    for name in ("anna", "bob", "cleo"):
        put(tmp_path / "all" / name / L4)
    put(tmp_path / "late" / "anna" / L4)
    place = Place(tmp_path / "out")
    place.prepare()
    freeze.freeze(tmp_path / "all", place, (L4,))
    with pytest.raises(WrongUse, match="2 of 3 submissions .* are not under .*late: bob, cleo. Late submissions"):
        freeze.freeze(tmp_path / "late", place, (L4,))
    assert sorted(os.listdir(place.frozen)) == ["anna", "bob", "cleo"]
    assert freeze.freeze(tmp_path / "late", place, (L4,), again=True).identities == ["anna"]
    assert os.listdir(place.frozen) == ["anna"]


def test_a_submission_that_was_withdrawn_is_dropped(tmp_path):
    for name in ("anna", "bob"):
        put(tmp_path / "subs" / name / L4)
    place = Place(tmp_path / "out")
    place.prepare()
    freeze.freeze(tmp_path / "subs", place, (L4,))
    shutil.rmtree(tmp_path / "subs" / "bob")
    assert freeze.freeze(tmp_path / "subs", place, (L4,)).identities == ["anna"]
    assert os.listdir(place.frozen) == ["anna"]


def test_a_folder_that_no_batch_wrote_is_left_alone(tmp_path):
    put(tmp_path / "out" / "thesis.tex")
    with pytest.raises(WrongUse, match="not empty"):
        Place(tmp_path / "out").prepare()
    assert os.listdir(tmp_path / "out") == ["thesis.tex"]


def test_two_batches_cannot_write_to_one_folder(tmp_path):
    first = Place(tmp_path / "out")
    first.prepare()
    with pytest.raises(WrongUse, match="another batch"):
        Place(tmp_path / "out").prepare()


@pytest.mark.parametrize("out", ["subs", ".", "subs/../subs", "subs/out"])
def test_results_do_not_go_where_the_submissions_are(tmp_path, out):
    put(tmp_path / "subs" / "anna" / L4)
    with pytest.raises(WrongUse, match="results"):
        freeze.check(tmp_path / "subs", tmp_path / out)


def test_a_folder_that_is_none_is_said_at_once(tmp_path):
    put(tmp_path / "file")
    for name, says in (("file", "is no folder"), ("nowhere", "is not there")):
        with pytest.raises(WrongUse, match=says):
            freeze.check(tmp_path / name, tmp_path / "out")


def test_what_is_frozen_already_is_not_written_again(tmp_path):
    file = put(tmp_path / "subs" / "anna" / L4, b"one\n")
    place = Place(tmp_path / "out")
    place.prepare()
    freeze.freeze(tmp_path / "subs", place, (L4,))
    copy = place.frozen / "anna" / L4
    before = copy.stat().st_mtime_ns
    freeze.freeze(tmp_path / "subs", place, (L4,))
    assert copy.stat().st_mtime_ns == before
    file.write_bytes(b"two\n")
    freeze.freeze(tmp_path / "subs", place, (L4,))
    assert copy.read_bytes() == b"two\n"
    copy.write_bytes(b"spoilt\n")
    freeze.freeze(tmp_path / "subs", place, (L4,))
    assert copy.read_bytes() == b"two\n"
