"""A broken environment is said as such, by grading and by doctor; it is never a wrong answer."""

import os
import subprocess
import sys

import pytest
from sample_grades import WRONG_VALUE, failed, grade, lesson, passed
from tiny_lesson import SOLUTION
from watch_run import STEM, build

from drills.errors import GraderFailed
from drills.report.model import Grade
from drills.study import doctor_checks, environment
from drills.study.doctor_checks import Finding

UNKNOWN = "off: triton 9.9.9 is not known: plain interpreter, no recorder"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = build(tmp_path_factory.mktemp("unfit"))
    (root / "mine" / f"{STEM}.py").write_text(SOLUTION)
    return root


def run(root, folder, *words):
    """`grade.py` where `folder` comes first among the packages: exit code, output, errors."""
    env = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "grade.py", *words]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr


def package(folder, name, text):
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text)
    return folder


def test_a_torch_that_does_not_load_is_one_line(root, tmp_path):
    package(tmp_path, "torch", "raise ImportError('libtorch_cpu.so: cannot open shared object file')")
    code, shown, said = run(root, tmp_path, "--device", "cpu")
    assert (code, shown.strip()) == (3, "")
    assert said.startswith("grade.py: a package that grading needs does not load: libtorch_cpu.so: ")
    assert said.count("\n") == 1 and "python grade.py doctor" in said
    code, shown, _ = run(root, tmp_path, "doctor", "--plain")
    assert code == 1
    assert "PROBLEM  no kernel runs in Triton's interpreter: ImportError: libtorch_cpu.so" in shown


def test_another_triton_early_on_the_path_is_no_wrong_answer(root, tmp_path):
    package(tmp_path, "triton", "__version__ = '2.1.0'")
    code, shown, _ = run(root, tmp_path, "--device", "cpu")
    assert code == 3
    assert "The grader failed: Triton does not work here" in shown
    assert "python grade.py doctor" in shown
    assert "FAIL" not in shown


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(doctor_checks, "_findable", lambda package: package != "numpy")
    assert doctor_checks.missing() == ["numpy"]
    assert doctor_checks.packages() == [Finding("problem", "not installed: numpy", doctor_checks.INSTALL)]


def test_a_package_that_is_too_old_is_named(monkeypatch):
    versions = {"torch": "2.13.0", "triton": "3.4.0"}
    monkeypatch.setattr(doctor_checks, "_version", lambda name: versions.get(name, "9.9"))
    [found] = doctor_checks.packages()
    assert (found.state, found.says.partition(": ")[2]) == ("problem", "triton is older than 3.6")


def test_the_triton_that_torch_asks_for(monkeypatch):
    asked = ["triton==3.7.1; platform_system == 'Linux'", "filelock"]
    monkeypatch.setattr(doctor_checks.metadata, "requires", lambda name: asked)
    versions = {"torch": "2.13.0", "triton": "3.6.0"}
    monkeypatch.setattr(doctor_checks, "_version", lambda name: versions.get(name, "9.9"))
    [found] = doctor_checks.packages()
    assert found.state == "problem" and "this torch wants triton 3.7.1" in found.says


def test_here_a_kernel_runs_and_compiles():
    assert [one.state for one in [*doctor_checks.interpreter(), *doctor_checks.compile_gate()]] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"broken": "KeyError: x"}, "no kernel runs in Triton's interpreter: KeyError: x"),
        ({"wrong": ["tl.dot"]}, "the interpreter computes tl.dot wrong"),
        ({"faults": ["random was replaced or changed"]}, "find fault with a right kernel: random was replaced"),
        ({"wrong": [], "instruments": False, "note": "triton 9.9.9 is not known"}, "without the instruments: triton"),
        (
            {"wrong": [], "triton": "/src/triton/__init__.py", "versions": {"triton": "3.3.0"}},
            "finds 3.3.0 first, in /src",
        ),
    ],
)
def test_what_is_wrong_with_the_interpreter_is_said(monkeypatch, found, says):
    here = {"versions": {"triton": doctor_checks._version("triton")}, "triton": "", "instruments": True, "note": ""}
    here |= {"wrong": [], "faults": []}
    monkeypatch.setattr(doctor_checks, "_try", lambda *_, **__: found if "broken" in found else here | found)
    [finding] = doctor_checks.interpreter()
    assert finding.state == "problem" and says in finding.says and finding.todo


def test_an_import_that_fails_names_doctor_and_ours_is_a_fault_of_the_grader():
    with pytest.raises(GraderFailed, match=r"does not load: no lib.*grade\.py doctor"), environment.blamed():
        raise ImportError("no lib\nand more", name="torch._C")
    with pytest.raises(ImportError), environment.blamed():
        raise ImportError("no module", name="drills.nowhere")


def wrong(instruments) -> Grade:
    return grade(lesson("l4_merge_states", failed("merge_state", WRONG_VALUE, "two states")), instruments=instruments)


def test_versions_that_are_not_known_are_tried_before_an_answer_is_called_wrong(monkeypatch):
    problem = Finding("problem", "the interpreter computes tl.dot wrong")
    monkeypatch.setattr(doctor_checks, "results", lambda: [problem])
    assert environment.examined(wrong(UNKNOWN)).grader_error == problem.says
    monkeypatch.setattr(doctor_checks, "results", list)
    assert environment.examined(wrong(UNKNOWN)).grader_error == ""


def test_the_readme_names_the_pythons_that_are_tested():
    assert f"On Linux with Python {environment.SHOWN_PYTHONS}," in (doctor_checks.ROOT / "README.md").read_text()


def test_so_is_a_python_that_is_newer_than_those_tested(monkeypatch):
    problem = Finding("problem", "the instruments find fault with a right kernel")
    monkeypatch.setattr(doctor_checks, "results", lambda: [problem])
    monkeypatch.setattr(environment, "newer_python", lambda: True)
    assert environment.examined(wrong("on")).grader_error == problem.says


@pytest.mark.parametrize("given", [wrong("on"), wrong("off: on a GPU there is no recorder"), passed])
def test_nothing_is_tried_where_versions_are_known_or_all_passed(monkeypatch, given):
    monkeypatch.setattr(doctor_checks, "results", lambda: pytest.fail("tried"))
    given = grade(lesson("l4_merge_states", passed("merge_state")), instruments=UNKNOWN) if given is passed else given
    assert environment.examined(given) is given
