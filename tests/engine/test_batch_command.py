"""The batch and merge commands as they are given: what they refuse, and that the instructors' page is right."""

import argparse
import dataclasses
import json
import re
import shlex
from pathlib import Path

import pytest

from drills import catalog, cli, commands
from drills.batch import command, engine, merge, seed, tally
from drills.batch.place import Place
from drills.errors import FAILED, GRADER_FAILED, PASSED, NoIsolation, WrongUse
from drills.report.console import open_console
from drills.report.model import ExerciseResult, Grade, LessonResult
from drills.report.submission import Submission
from drills.sandbox import isolation
from drills.sandbox.isolation import Probed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8")
GIVEN = re.findall(r"python grade\.py (?:[^\n`]|\n {8,}(?=--))+", PAGE)


def parsed(words):
    """The command, and its options as the command line reads them."""
    found = commands.available()[words[0]]
    parser = argparse.ArgumentParser(exit_on_error=False)
    found.load().arguments(parser)
    cli._add_screen_options(parser)
    return words[0], parser.parse_intermixed_args(words[1:])


def test_the_page_names_every_command_that_an_instructor_needs():
    assert {line.split()[2] for line in GIVEN} >= {"batch", "merge", "release", "doctor", "l4.merge_state"}
    assert len(GIVEN) >= 15


@pytest.mark.parametrize("line", GIVEN)
def test_a_command_on_the_page_can_be_given(line):
    text = re.sub(r"\$\{\{ matrix\.shard \}\}|\$\(\([^)]*\)\)|\$SLURM_ARRAY_TASK_ID|\$JOB_COMPLETION_INDEX", "3", line)
    words = shlex.split(text.split(" && ")[-1].replace("$RUNNER_TEMP", "/tmp"))[2:]
    if words[0] in ("COMMAND", "doctor"):
        return
    if words[0] not in commands.available():
        parser = argparse.ArgumentParser(exit_on_error=False)
        cli.GRADING.load().arguments(parser)
        for lesson in parser.parse_args(words).names:
            catalog.find(lesson)
        return
    name, options = parsed(words)
    for lesson in getattr(options, "names", []):
        catalog.find(lesson)
    if getattr(options, "shard", None):
        assert options.seed_file and options.shard[0] <= options.shard[1] and options.out
    if name == "merge":
        assert options.shards and options.out


def test_lessons_may_come_after_the_options():
    _, options = parsed(["batch", "subs", "-o", "out", "l4", "l5.cascade"])
    assert (str(options.folder), options.names) == ("subs", ["l4", "l5.cascade"])


@pytest.mark.parametrize("text", ["0", "513", "many", "-1", "2.5", "\u00b2"])
def test_a_number_of_workers_that_is_none_is_refused(text):
    with pytest.raises(argparse.ArgumentError, match="is no number of workers"):
        parsed(["batch", "subs", "-o", "out", "--jobs", text])


def test_results_do_not_go_into_a_file(tmp_path):
    (tmp_path / "out").write_text("a file")
    for out in (tmp_path / "out", tmp_path / "out" / "deeper"):
        with pytest.raises(WrongUse, match="a file is in the way"):
            Place(out).prepare()


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "-1/4", "1/0", "1/4/4", "\u00b2/4"])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(argparse.ArgumentError):
        parsed(["batch", "subs", "-o", "out", "--shard", text])


def isolated(monkeypatch, *holding, **options):
    """What is chosen where these levels hold."""
    probed = {name: Probed(name, name in holding, "" if name in holding else "not here") for name in isolation.LEVELS}
    monkeypatch.setattr(isolation, "probe_one", probed.__getitem__)
    return command.choose_isolation(argparse.Namespace(**{"isolation": None, "weak_isolation": False, **options}))


def test_the_strictest_isolation_is_taken(monkeypatch):
    assert isolated(monkeypatch, "bwrap", "landlock", "process").name == "bwrap"
    assert isolated(monkeypatch, "landlock", "process").name == "landlock"


@pytest.mark.parametrize("asked", [None, "process"])
def test_strangers_are_not_graded_behind_process_limits_alone(monkeypatch, asked):
    holding = ("process",) if asked is None else isolation.LEVELS
    with pytest.raises(NoIsolation, match="--weak-isolation"):
        isolated(monkeypatch, *holding, isolation=asked)
    assert isolated(monkeypatch, *holding, isolation=asked, weak_isolation=True).name == "process"
    assert NoIsolation.code == 4


def test_isolation_that_was_asked_for_is_not_replaced_by_a_weaker_one(monkeypatch):
    with pytest.raises(NoIsolation, match="bwrap does not hold here: not here"):
        isolated(monkeypatch, "landlock", "process", isolation="bwrap", weak_isolation=True)


def test_a_shard_needs_a_seed_that_all_shards_have(tmp_path):
    options = argparse.Namespace(shard=(1, 2), seed_file=None)
    with pytest.raises(WrongUse, match="--draw-seed"):
        command._seed(options)


def test_a_seed_is_drawn_once_and_read_back(tmp_path, capsys):
    path = tmp_path / "seed.json"
    assert cli.main(["batch", "--draw-seed", str(path)]) == PASSED
    drawn = seed.load(path)
    said = capsys.readouterr().out
    assert drawn.sha256 in said and str(drawn.value) not in said and drawn.salt not in said
    assert path.stat().st_mode & 0o077 == 0
    assert cli.main(["batch", "--draw-seed", str(path)]) == 2
    assert seed.load(path) == drawn
    assert len({seed.draw().value for _ in range(50)}) == 50
    assert dataclasses.replace(drawn, salt="x").sha256 != drawn.sha256


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 1, "seed": "x", "salt": "y"}', '{"schema": 9}'])
def test_a_file_that_holds_no_seed_is_said_to_be_none(tmp_path, text):
    (tmp_path / "seed").write_text(text)
    with pytest.raises(WrongUse, match="no seed file"):
        seed.load(tmp_path / "seed")


# merge


def shard(folder, names, part=None, ended="now", **changes):
    """A shard with a passed result for each name."""
    place = Place(folder)
    place.prepare()
    tree = {
        "fingerprint": "f",
        "lessons": {"l4_merge_states": ["merge_state"]},
        "versions": {"torch": "2"},
        "code_sha256": "c",
        "isolation": "bwrap",
        "level": None,
        "timeout": 10.0,
        "seed_sha256": "s",
        "shard": part,
        "submissions": len(names),
        "not_taken": [],
        "ended": ended,
        **changes,
    }
    place.write_batch(tree)
    for name in names:
        lesson = LessonResult("l4_merge_states", "T", f"{name}/l4_merge_states.py", "ab")
        lesson.exercises.append(ExerciseResult("merge_state", "passed"))
        grade = Grade(f"{name}/", "cpu", lessons=[lesson])
        made_with = {"fingerprint": tree["fingerprint"], "isolation": "bwrap", "seed_sha256": "s"}
        place.write(Submission(name, name, {"l4_merge_states.py": "ab"}, grade=grade, made_with=made_with))
    place.release()
    return folder


def merged(tmp_path, *shards, **options):
    """Merges; the exit code."""
    parser = argparse.ArgumentParser()
    merge.arguments(parser)
    words = [*map(str, shards), "-o", str(tmp_path / "whole"), *(f"--{name}" for name in options)]
    return merge.run(parser.parse_args(words), open_console(color=False, plain=True))


def test_shards_become_one_class(tmp_path, capsys):
    one = shard(tmp_path / "1", ["anna", "bob"], [1, 2])
    two = shard(tmp_path / "2", ["cleo"], [2, 2])
    assert merged(tmp_path, one, two) == PASSED
    whole = Place(tmp_path / "whole")
    assert list(whole.identities()) == ["anna", "bob", "cleo"]
    assert len((tmp_path / "whole" / "gradebook.csv").read_text().splitlines()) == 4
    assert json.loads(whole.batch.read_text())["submissions"] == 3
    assert merged(tmp_path, two, one) == PASSED  # and again, in another order


def test_a_missing_shard_is_named(tmp_path, capsys):
    one, three = shard(tmp_path / "1", ["anna"], [1, 3]), shard(tmp_path / "3", ["cleo"], [3, 3])
    with pytest.raises(WrongUse, match="shard 2 of 3 is not there"):
        merged(tmp_path, one, three)
    assert merged(tmp_path, one, three, partial=True) == GRADER_FAILED
    assert "shard 2 of 3" in capsys.readouterr().out


def test_a_shard_that_was_stopped_is_named(tmp_path):
    one, two = shard(tmp_path / "1", ["anna"], [1, 2]), shard(tmp_path / "2", ["cleo"], [2, 2], ended=None)
    with pytest.raises(WrongUse, match="shard 2 of 2 was not graded to its end"):
        merged(tmp_path, one, two)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lessons": {"l5_cascade": ["cascade"]}}, "lessons differ"),
        ({"versions": {"torch": "1"}}, "versions differ"),
        ({"seed_sha256": "t"}, "the secret seed differs"),
        ({"code_sha256": "d"}, "the grader or its tests differ"),
        ({"timeout": 1.0}, "timeout differs"),
        ({"isolation": "process"}, "isolation differs"),
        ({"fingerprint": "g"}, "the settings differ"),
    ],
)
def test_what_does_not_fit_is_not_merged(tmp_path, changes, says):
    one, two = shard(tmp_path / "1", ["anna"], [1, 2]), shard(tmp_path / "2", ["cleo"], [2, 2], **changes)
    with pytest.raises(WrongUse, match=says):
        merged(tmp_path, one, two)
    assert not (tmp_path / "whole").exists()


def test_a_whole_of_another_lesson_is_not_replaced(tmp_path):
    assert merged(tmp_path, shard(tmp_path / "1", ["anna"], [1, 1])) == PASSED
    before = (tmp_path / "whole" / "gradebook.csv").read_bytes()
    other = shard(tmp_path / "2", ["anna"], [1, 1], lessons={"l5_cascade": ["cascade"]})
    with pytest.raises(WrongUse, match="holds results of l4, not of l5: name a new folder"):
        merged(tmp_path, other)
    assert (tmp_path / "whole" / "gradebook.csv").read_bytes() == before


def test_an_import_of_an_earlier_run_is_told(tmp_path, capsys):
    one = shard(tmp_path / "1", ["anna"], [1, 1])
    assert merged(tmp_path, one) == PASSED and "canvas.csv" not in capsys.readouterr().out
    (tmp_path / "whole" / "canvas.csv").touch()
    assert merged(tmp_path, one) == PASSED and "canvas.csv is of an earlier run" in capsys.readouterr().out


def test_nobody_is_in_the_gradebook_twice(tmp_path):
    one, two = shard(tmp_path / "1", ["anna"], [1, 2]), shard(tmp_path / "2", ["anna"], [2, 2])
    with pytest.raises(WrongUse, match="anna was graded in two shards"):
        merged(tmp_path, one, two)
    with pytest.raises(WrongUse, match="shard 1 of 2 is given twice"):
        merged(tmp_path, one, shard(tmp_path / "3", ["bob"], [1, 2]))


def test_a_result_of_another_batch_or_a_broken_one_is_found(tmp_path):
    one, two = shard(tmp_path / "1", ["anna"], [1, 2]), shard(tmp_path / "2", ["cleo"], [2, 2])
    result = two / "results" / "cleo.json"
    text = result.read_text()
    result.write_text(text.replace('"fingerprint": "f"', '"fingerprint": "old"'))
    with pytest.raises(WrongUse, match="not of this batch"):
        merged(tmp_path, one, two)
    result.write_text(text[:100])
    with pytest.raises(WrongUse, match="cannot be read"):
        merged(tmp_path, one, two)


def test_a_class_in_which_somebody_failed_says_so(tmp_path):
    one = shard(tmp_path / "1", ["anna"], [1, 1])
    place = Place(one)
    place.write(dataclasses.replace(place.read("anna"), problem="no file", grade=None))
    assert merged(tmp_path, one) == FAILED


def test_after_a_stop_one_is_told_what_the_same_command_does():
    assert "The same command goes on from here." in engine._stopped(tally.Tally(3), again=False)
    assert "0 of 3 were graded anew." in engine._stopped(tally.Tally(3), again=True)
