"""Progress is a plain file that is never half-written, never needed, and never a reason to crash."""

import json
import os

import pytest
from sample_grades import grade, lesson, passed

from drills.study import progress
from drills.study.passed import news


def stored(folder):
    return json.loads((folder / progress.NAME).read_text())


def test_what_is_recorded_is_read_back(tmp_path):
    assert progress.record_passed({"l4.merge_state": "abc"}, tmp_path) == ""
    assert progress.record_hint("l4.merge_states", 2, tmp_path) == ""
    assert progress.record_quiz("l4", 6, 7, tmp_path) == ""
    done = progress.load(tmp_path)
    assert done.passed["l4.merge_state"]["sha256"] == "abc"
    assert done.hints == {"l4.merge_states": 2}
    assert done.quiz == {"l4": {"right": 6, "of": 7}}


def test_the_file_is_readable_by_people(tmp_path):
    progress.record_hint("l4.merge_state", 1, tmp_path)
    assert '    "l4.merge_state": 1' in (tmp_path / progress.NAME).read_text().splitlines()


def test_a_hint_seen_stays_seen(tmp_path):
    progress.record_hint("l4.merge_state", 3, tmp_path)
    progress.record_hint("l4.merge_state", 1, tmp_path)
    assert progress.load(tmp_path).hints == {"l4.merge_state": 3}


def test_the_time_of_the_first_pass_stays_and_the_code_is_the_last(tmp_path):
    progress.record_passed({"l4.merge_state": "first"}, tmp_path)
    when = progress.load(tmp_path).passed["l4.merge_state"]["when"]
    progress.record_passed({"l4.merge_state": "second"}, tmp_path)
    assert progress.load(tmp_path).passed["l4.merge_state"] == {"when": when, "sha256": "second"}


@pytest.mark.parametrize("damage", ["{", "[]", "", "\x00", '"text"', "[" * 100_000])
def test_a_broken_file_is_said_and_kept_aside(tmp_path, damage):
    (tmp_path / progress.NAME).write_text(damage)
    assert progress.load(tmp_path) == progress.Progress()
    told = progress.record_hint("l4.merge_state", 1, tmp_path)
    assert ".progress.broken-1.json" in told
    assert (tmp_path / ".progress.broken-1.json").read_text() == damage
    assert stored(tmp_path)["hints"] == {"l4.merge_state": 1}


def test_a_second_broken_file_does_not_replace_the_first(tmp_path):
    for number, damage in ((1, "one"), (2, "two")):
        (tmp_path / progress.NAME).write_text(damage)
        progress.record_quiz("l4", 1, 7, tmp_path)
        assert (tmp_path / f".progress.broken-{number}.json").read_text() == damage


@pytest.mark.parametrize(
    "tree", [{"hints": 3}, {"hints": {"l4.merge_state": "two"}}, {"quiz": {"l4": [1, 2]}}, {"passed": {"a": 1}}]
)
def test_entries_of_another_form_are_left_out(tmp_path, tree):
    (tmp_path / progress.NAME).write_text(json.dumps(tree))
    assert progress.load(tmp_path) == progress.Progress()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    assert "not kept" in progress.record_quiz("l4", 1, 7, tmp_path / "nowhere")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    progress.record_hint("l4.merge_state", 1, tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in progress.record_hint("l4.merge_state", 2, tmp_path)
    assert progress.load(tmp_path).hints == {"l4.merge_state": 1}
    assert [path.name for path in tmp_path.iterdir()] == [progress.NAME]


def test_a_first_pass_shows_the_way_to_the_solution_once(tmp_path, monkeypatch):
    half = grade(lesson("l4_merge_states", passed("merge_state"), passed("merge_states")))
    monkeypatch.setattr(progress.load, "__defaults__", (tmp_path,))
    assert news(half) == (
        "Passed for the first time: l4.merge_state, l4.merge_states\n Compare  python grade.py show l4.merge_states"
    )
    progress.record_passed({"l4.merge_state": "a", "l4.merge_states": "b"}, tmp_path)
    assert news(half) == ""


def test_where_all_passed_the_scorecard_shows_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(progress.load, "__defaults__", (tmp_path,))
    assert news(grade(lesson("l1_online_softmax", *map(passed, ("softmax_stats", "softmax", "attend"))))) == ""
