"""Whatever becomes of a worker, every submission comes to an end, the rest goes on, and no process is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drills.batch.crew import ATTEMPTS, Crew
from drills.batch.place import Place
from drills.batch.public import GRADER
from drills.batch.settings import Settings
from drills.catalog import ROOT
from drills.errors import GraderFailed
from drills.sandbox import limits

DOUBLE = (sys.executable, str(Path(__file__).with_name("batch_worker_double.py")))


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "out")
    place.prepare()
    yield place
    place.release()


@pytest.fixture
def grade(place):
    """Has these submissions graded by doubles: id → summary."""

    def grade(*names, jobs=2, wall=60.0, silence=60.0, command=DOUBLE, burial=15.0):
        how = Settings({"l1_x": ("one",)}, "process", timeout=0.01, wall=wall)
        with Crew(how, place, jobs, command, silence=silence, burial=burial) as crew:
            crew.begin(42, {"fingerprint": "f"})
            return {one["id"]: one for one in crew.grade(iter(names), lambda: None)}

    before = set(limits.children(os.getpid()))
    yield grade
    assert set(limits.children(os.getpid())) <= before


def tries(place, name):
    return len((place.logs / f"{name}.tries").read_text())


def test_each_submission_is_graded_once_with_the_seed(grade, place):
    names = [f"ok{number}" for number in range(20)]
    got = grade(*names, jobs=3)
    assert sorted(got) == sorted(names) and {one["seed"] for one in got.values()} == {"42"}
    assert {tries(place, name) for name in names} == {1}


def test_a_worker_that_ends_is_replaced_and_its_submission_tried_again(grade, place):
    got = grade("ok1", "stumbles", "dies", "babbles", "ok2")
    assert len(got) == 5
    assert got["stumbles"]["standing"] == "passed" and tries(place, "stumbles") == 2
    assert tries(place, "dies") == tries(place, "babbles") == ATTEMPTS
    for name in ("dies", "babbles"):
        assert got[name]["error"] and place.read(name).problem == GRADER
        assert place.read(name).made_with == {"fingerprint": "f"}


def test_where_the_grader_failed_a_submission_is_tried_again_by_a_fresh_worker(grade, place):
    got = grade("breaks", "ok")
    assert got["breaks"]["error"] and tries(place, "breaks") == ATTEMPTS


def test_a_submission_that_takes_too_long_is_given_up_at_once(grade, place):
    got = grade("works", "ok1", "ok2", wall=1.0)
    assert len(got) == 3 and tries(place, "works") == 1
    assert "longer than 1 s" in place.read("works").problem and not got["works"]["error"]


def test_a_worker_that_falls_silent_is_replaced(grade, place):
    got = grade("hangs", "ok", silence=0.5)
    assert got["hangs"]["error"] and tries(place, "hangs") == ATTEMPTS


def test_what_a_worker_leaves_behind_is_ended(grade, place):
    grade("haunts", wall=0.5, jobs=1, burial=0.5)
    ghost = int((place.logs / "ghost").read_text())
    assert not os.path.exists(f"/proc/{ghost}")


def test_a_full_disk_stops_the_batch_in_one_line(grade):
    with pytest.raises(GraderFailed, match="No space left on device.*same command again"):
        grade("ok", "full")


def test_workers_that_do_not_start_are_not_started_for_ever(grade):
    with pytest.raises(GraderFailed, match="no worker starts.*broken"):
        grade("ok", command=(sys.executable, "-c", "raise SystemExit('broken')"))


def test_nothing_to_grade_ends_at_once(grade):
    assert grade() == {}


def test_workers_that_start_together_are_children_and_share_nothing_that_is_open(place):
    before = set(limits.children(os.getpid()))
    how = Settings({"l4_merge_states": ("merge_state",)}, "process", timeout=1.0, wall=60.0)
    with Crew(how, place, 3) as crew:
        while any(one.state == "starting" for one in crew.members):
            assert list(crew._turn()) == []
        workers = [one.process.pid for one in crew.members]
        assert set(workers) <= set(limits.children(os.getpid())) and len(set(workers)) == 3
        first, second, third = map(open_sockets, workers)
        assert not (first & second or second & third or first & third)
        crew.members[0].process.kill()  # and the others live on
        crew.begin(42, {"fingerprint": "f"})
        assert [one.process.pid for one in crew.members[1:]] == workers[1:]
        assert all(os.path.exists(f"/proc/{one}") for one in workers[1:])
    assert set(limits.children(os.getpid())) <= before


def open_sockets(pid):
    folder = f"/proc/{pid}/fd"
    links = {os.readlink(f"{folder}/{number}") for number in os.listdir(folder)}
    return {one for one in links if one.startswith("socket:")}


def test_a_worker_sets_its_threads_before_torch_is_there(tmp_path):
    code = (
        "import pathlib, sys\n"
        "from drills.batch import worker\n"
        "from drills.batch.settings import Settings\n"
        "assert 'torch' not in sys.modules\n"
        f"made = worker.Grader(Settings({{}}, 'process'), pathlib.Path({str(tmp_path)!r}), None)\n"
        "made.close()\n"
        "worker.load()\n"
        "print(sys.modules['torch'].get_num_threads())"
    )
    environment = {name: text for name, text in os.environ.items() if "_NUM_THREADS" not in name}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("1", "")
