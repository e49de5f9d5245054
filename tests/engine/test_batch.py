"""A batch from folders to results: verdicts, going on after a stop, and that no submission harms another."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import class_of_strangers as strangers
import pytest
import tiny_lesson

from drills.batch import changes, engine, settings
from drills.batch.place import Place
from drills.errors import FAILED, PASSED, NothingGraded, WrongUse
from drills.report import standing
from drills.sandbox import isolation

ROOT = Path(__file__).resolve().parents[2]
REAL_CODE = settings.code
LEVEL = isolation.best().name

KILLER = "    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n    os._exit(0)\n"
FORGER = "    import sys; sys.modules['drills'] = None\n    import torch; torch.equal = lambda *a: True\n    return x\n"
TEXTS = {
    "right": tiny_lesson.SOLUTION,
    "wrong": strangers.changed(strangers.SQUARED),
    "syntax": "def double(:\n",
    "killer": strangers.leaking(KILLER),
    "forger": strangers.leaking(FORGER),
    "looper": strangers.leaking("    while True: pass\n"),
    "zlast": tiny_lesson.SOLUTION,
}
STANDINGS = {
    "right": "passed",
    "wrong": "partly",
    "syntax": "could not be graded",
    "killer": "partly",
    "forger": "nothing",  # who changes what the grader computes with passes nothing
    "looper": "partly",
    "zlast": "passed",
}


@pytest.fixture(scope="module", autouse=True)
def same_code():
    """One version of the grader throughout, although its files may be edited meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "code", lambda how: "one version")
        yield


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class of seven, graded once: the folder of everything, and where it was written."""
    folder = tmp_path_factory.mktemp("class")
    root = tiny_lesson.build(folder / "repository").root
    strangers.write(folder / "subs", **TEXTS)
    how = strangers.settings(root, LEVEL, timeout=4.0)
    code, place, said = strangers.grade(folder / "subs", folder / "out", how)
    assert code == FAILED, (said, (place.logs / "workers.txt").read_text())
    return folder, how, place


def test_everybody_has_the_verdict_they_earned(graded):
    _, _, place = graded
    assert {one.id: standing.standing(one) for one in place.submissions()} == STANDINGS
    assert json.loads(place.batch.read_text())["counts"]["passed"] == 2


def test_a_result_names_what_was_graded_and_how(graded):
    folder, how, place = graded
    one = place.read("right")
    assert one.files == {"l91_tiny.py": one.grade.lessons[0].sha256} and len(one.files["l91_tiny.py"]) == 64
    assert one.grade.isolation == one.made_with["isolation"] == LEVEL
    assert one.grade.lessons[0].file == "right/l91_tiny.py"
    assert one.grade.seconds >= 1 and one.grade.seconds == int(one.grade.seconds)
    assert {json.dumps(one.grade.versions) for one in place.submissions()} == {json.dumps(settings.versions())}
    assert not any(test.seconds for test in one.grade.lessons[0].exercises[0].tests)
    assert one.made_with["fingerprint"] == place.read_batch()["fingerprint"]


def test_only_what_changed_is_graded_again(graded):
    folder, how, place = graded
    before = {path.name: path.stat().st_mtime_ns for path in place.results.iterdir()}
    strangers.write(folder / "subs", wrong=tiny_lesson.SOLUTION, late=tiny_lesson.SOLUTION)
    (folder / "subs" / "right" / "extra").symlink_to("/etc/passwd")  # noted, so it is another submission
    code, _, said = strangers.grade(folder / "subs", place.root, how)
    assert "anew" not in said and "3 graded now, 5 as before" in said and "1 worker" in said
    after = {path.name: path.stat().st_mtime_ns for path in place.results.iterdir()}
    anew = {name for name in after if after[name] != before.get(name)}
    assert anew == {"wrong.json", "late.json", "right.json"}
    assert place.read("wrong").grade.lessons[0].exercises[0].state == "passed"
    assert code == FAILED


def test_where_nothing_is_to_be_graded_no_worker_starts(tmp_path, monkeypatch):
    """Also of a submission without a file, which gets its result, and keeps it, without one."""
    monkeypatch.setattr(engine, "Crew", None)
    (tmp_path / "subs" / "empty").mkdir(parents=True)
    how = strangers.settings(tiny_lesson.build(tmp_path / "repository").root)
    for says in ("passed 0", "0 graded now, 1 as before"):
        code, place, said = strangers.grade(tmp_path / "subs", tmp_path / "out", how)
        assert says in said and "could not be graded 1" in said and code == FAILED
    assert "none of the files" in place.read("empty").problem
    assert ",process," in (place.root / "gradebook.csv").read_text()


def test_what_lies_beside_the_submissions_is_told_on_the_screen_and_in_problems(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "Crew", None)
    (tmp_path / "subs").mkdir()
    (tmp_path / "subs" / "roster.csv").write_text("anna\n")
    how = strangers.settings(tiny_lesson.build(tmp_path / "repository").root)
    with pytest.raises(NothingGraded, match="in it; left out was roster.csv: not named as the files asked for"):
        strangers.grade(tmp_path / "subs", tmp_path / "out", how)
    (tmp_path / "subs" / "empty").mkdir()
    _, place, said = strangers.grade(tmp_path / "subs", tmp_path / "out", how)
    assert "Files beside the submissions were left out: see" in said
    problems = (place.root / "problems.txt").read_text().splitlines()
    assert problems[0] == "not taken: roster.csv: not named as the files asked for"


def test_what_changed_since_the_last_run_is_named():
    old = {"isolation": "bwrap", "level": None, "timeout": 10.0, "versions": {"torch": "2.11.0"}, "lessons": {}}
    old |= {"seconds_each": 60.0, "code_sha256": "a", "seed_sha256": "b"}
    new = old | {"isolation": "landlock", "level": "edge", "versions": {"torch": "2.13.0"}, "code_sha256": "c"}
    assert changes.changed(old, new) == (
        "isolation was bwrap and is landlock; the level was all and is edge; torch was 2.11.0 and is 2.13.0; "
        "the grader or its tests are others"
    )
    shorter = old | {"timeout": 4.0, "seconds_each": 9.0}
    assert changes.changed(old, shorter) == "the time for one call was 10 s and is 4 s"
    assert changes.changed(old, old | {"seconds_each": 9.0}) == "the time for one submission is another"


def test_another_seed_grades_everybody_again_and_a_folder_that_is_gone_has_no_result(tmp_path):
    root = tiny_lesson.build(tmp_path / "repository").root
    strangers.write(tmp_path / "subs", a=tiny_lesson.SOLUTION, b=tiny_lesson.SOLUTION)
    how = strangers.settings(root, level="value")
    assert strangers.grade(tmp_path / "subs", tmp_path / "out", how)[0] == PASSED
    os.unlink(tmp_path / "subs" / "b" / "l91_tiny.py")
    os.rmdir(tmp_path / "subs" / "b")
    before = (tmp_path / "out" / "results" / "a.json").stat().st_mtime_ns
    code, place, said = strangers.grade(tmp_path / "subs", tmp_path / "out", how, seed=strangers.Seed(7, "s"))
    assert "the secret seed is another. All are graded anew." in said
    assert code == PASSED and list(place.identities()) == ["a"]
    assert (place.results / "a.json").stat().st_mtime_ns != before
    assert not (place.frozen / "b").exists() and not (place.hidden / "b.json").exists()


def test_results_of_other_exercises_or_another_level_are_not_replaced_unasked(tmp_path):
    root = tiny_lesson.build(tmp_path / "repository").root
    strangers.write(tmp_path / "subs", a=tiny_lesson.SOLUTION)
    how = strangers.settings(root, level="value")
    assert strangers.grade(tmp_path / "subs", tmp_path / "out", how)[0] == PASSED
    before = (tmp_path / "out" / "results" / "a.json").read_bytes()
    edges = strangers.settings(root, level="edge")
    with pytest.raises(WrongUse, match="results of l91 at level value, not of l91 at level edge"):
        strangers.grade(tmp_path / "subs", tmp_path / "out", edges)
    assert (tmp_path / "out" / "results" / "a.json").read_bytes() == before
    code, _, said = strangers.grade(tmp_path / "subs", tmp_path / "out", edges, again=True)
    assert code == PASSED and "All are graded anew" in said


def test_what_would_be_replaced_is_named():
    l4, l5 = {"lessons": {"l4_x": ["a", "b"]}, "level": None}, {"lessons": {"l5_y": ["c"]}, "level": None}
    assert changes.replaced(l4, dict(l4, seed=1)) == ""
    assert changes.replaced(l4, l5) == "results of l4, not of l5"
    assert changes.replaced(l4, {"lessons": {"l4_x": ["a"]}, "level": None}) == "results of l4.a, l4.b, not of l4.a"
    assert changes.replaced(l4, dict(l4, level="edge")) == "results of l4 at all levels, not of l4 at level edge"


def test_a_verdict_depends_on_the_tests_the_stub_and_the_settings(tmp_path):
    root = tiny_lesson.build(tmp_path / "repository").root
    how = strangers.settings(root)
    made = [REAL_CODE(how)]
    for path in ("tests/test_l91_tiny.py", "drills/lessons/l91_tiny.py", "solutions/l91_tiny.py"):
        (root / path).write_text((root / path).read_text() + "\n# changed\n")
        made.append(REAL_CODE(strangers.settings(root)))
    marks = {settings.fingerprint(one, "s") for one in (how, strangers.settings(root, timeout=1.0))}
    assert len(set(made)) == 4 and len(marks | {settings.fingerprint(how, "t")}) == 3


STARTED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import class_of_strangers as strangers
from drills.batch import settings
from drills.batch.command import stopping
settings.code = lambda how: "one version"
folder = Path(sys.argv[3])
with stopping():
    strangers.grade(folder / "subs", folder / "out", strangers.settings(folder / "repository"))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_batch_that_was_stopped_leaves_whole_results_and_no_process(tmp_path, number):
    tiny_lesson.build(tmp_path / "repository")
    names = [f"s{index}" for index in range(6)]
    strangers.write(tmp_path / "subs", **dict.fromkeys(names, tiny_lesson.SOLUTION))
    command = [sys.executable, "-c", STARTED, str(ROOT), str(ROOT / "tests" / "engine"), str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    place = Place(tmp_path / "out")
    wait_for(lambda: len(list(place.identities())) >= 2, process)
    family = descendants(process.pid)
    process.send_signal(number)
    process.wait(60)
    wait_for(lambda: not any(map(alive, family)))
    assert len(family) > 3
    done = {one.id: (place.results / f"{one.id}.json").stat().st_mtime_ns for one in place.submissions()}
    assert 2 <= len(done) == len(list(place.identities()))
    code, _, _ = strangers.grade(tmp_path / "subs", tmp_path / "out", strangers.settings(tmp_path / "repository"))
    assert code == PASSED and list(place.identities()) == names
    assert all((place.results / f"{name}.json").stat().st_mtime_ns == when for name, when in done.items())


def wait_for(holds, process=None, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline and (process is None or process.poll() is None)
        time.sleep(0.02)


def descendants(pid):
    from drills.sandbox import limits

    return limits.family(pid)[1:]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
