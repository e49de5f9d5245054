"""A class of attackers and honest students, graded in one batch: verdicts, an end in time, nothing left over.

At the strictest level the answers whose fate depends on it, and one in six of the others; with `HOSTILE=all` in the
environment (weekly) the whole corpus at every level.
"""

import os
import tempfile
import time
from pathlib import Path

import class_of_strangers as strangers
import pytest
import small_lesson_4
from test_hostile import ALL, CORPUS, HERE, MARK, TELLING

from drills.batch.settings import Settings
from drills.catalog import ROOT
from drills.sandbox import limits

TIMEOUT = 1.5
SECONDS_EACH = 60.0
"""Of a batch, for each submission: far more than any takes, far less than a batch that hangs."""


def chosen(level):
    """The corpus's answers that are stated for this level."""
    stated = {name: one for name, one in CORPUS.items() if level in one[1].get("levels", level).split()}
    some = set(stated if ALL else list(stated)[::6])
    return {name: one for name, one in stated.items() if name in some or name.startswith(TELLING)}


def around():
    """What hostile code might leave: entries of shared folders with its mark."""
    folders = {Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), ROOT, ROOT / "solutions", ROOT / "tests"}
    return {str(folder / name) for folder in folders if folder.is_dir() for name in os.listdir(folder) if MARK in name}


@pytest.mark.parametrize("level", HERE if ALL else HERE[:1])
def test_a_class_of_attackers_is_graded_and_nobody_else_harmed(tmp_path, monkeypatch, level):
    answers = chosen(level)
    root, private = tmp_path / "repository", tmp_path / "private"
    private.mkdir()
    monkeypatch.setenv("TMPDIR", str(private))
    small_lesson_4.build(root)
    for name, (file, _) in answers.items():
        folder = tmp_path / "subs" / name
        folder.mkdir(parents=True)
        (folder / f"{small_lesson_4.STEM}.py").write_bytes(file.read_bytes())
    how = Settings({small_lesson_4.STEM: ("merge_state",)}, level, timeout=TIMEOUT, root=str(root))
    before, family = around(), set(limits.family(os.getpid()))
    listing = sorted(os.listdir(tmp_path))
    begun = time.monotonic()
    _, place, said = strangers.grade(tmp_path / "subs", tmp_path / "out", how, jobs=2)
    assert time.monotonic() - begun < SECONDS_EACH * len(answers)
    assert set(limits.family(os.getpid())) <= family
    assert around() <= before
    assert not list(private.iterdir())
    assert sorted(os.listdir(tmp_path)) == sorted([*listing, "out"])
    got = {one.id: "problem" if one.problem else one.grade.lessons[0].exercises[0].state for one in place.submissions()}
    assert got == {name: stated["expect"] for name, (_, stated) in answers.items()}, said
    assert {one.made_with["isolation"] for one in place.submissions()} == {level}
