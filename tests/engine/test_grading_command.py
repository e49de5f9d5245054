"""`grade.py` on lessons: options, exit codes, files and colours, with a session that returns hand-made grades."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from repository_of_its_own import build, grade

ENGINE = Path(__file__).parent
SESSION = """
import os
from sample_grades import SCREENS

def grade(request):
    if os.environ["SCREEN"] == "stopped":
        raise KeyboardInterrupt
    if os.environ["SCREEN"] == "broken":
        raise RuntimeError("out of\\nchalk")
    return SCREENS[os.environ["SCREEN"]]
"""


@pytest.fixture
def root(tmp_path):
    build(tmp_path)
    (tmp_path / "drills" / "session.py").write_text(SESSION)
    return tmp_path


def run(root, line, code, screen="all_passed", **environment):
    return grade(root, line, code, SCREEN=screen, PYTHONPATH=str(ENGINE), **environment)


@pytest.mark.parametrize(
    ("screen", "code"),
    [("all_passed", 0), ("half_done", 1), ("syntax_error", 1), ("grader_failed", 3), ("all_not_started", 5)],
)
def test_the_exit_code_is_the_verdict(root, screen, code):
    run(root, "", code, screen)
    run(root, "--exit-zero", 3 if code == 3 else 0, screen)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("l5", 'no lesson "l5": there are l1 and l4'),
        ("l4.merge_stats", "did you mean l4.merge_states?"),
        ("--target nowhere", "--target nowhere: there is no such folder"),
        ("--target grade.py", "--target grade.py is a file: name the folder that holds it"),
        ("--json mine", "mine is a folder: name a file"),
        ("--json no/where.json", "is not there"),
        ("--solutions --target mine", "not allowed with argument"),
        ("--level fast", "invalid choice: 'fast'"),
        ("--timeout 0", "0 is no number of seconds above 0"),
        ("--timeout nan", "nan is no number of seconds above 0"),
        ("--timeout soon", "soon"),
        ("--seed x", "invalid int value: 'x'"),
        ("l4 --no-colour", "unrecognized arguments: --no-colour: did you mean --no-color?"),
        ("l4 --sed=3", "did you mean --seed?"),
        ("l4 --fast", "--help names the options"),
        ("lst", 'no lesson or command "lst": did you mean python grade.py list'),
        ("grade l4", 'no command "grade", since grading needs none: python grade.py l4'),
        ("help", "did you mean python grade.py --help"),
        ("drills", '"drills" is a folder and no lesson: there are l'),
        ("--plain list", '"list" comes first: python grade.py list'),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(root, line, says):
    said = run(root, line, 2)
    assert says in said
    assert len([one for one in said.splitlines() if "error:" in one or one.startswith("grade.py:")]) == 1


def test_json_is_what_the_screen_says(root):
    said = run(root, "l4 --json out.json", 1, "half_done")
    tree = json.loads((root / "out.json").read_text())
    assert tree["passed"] == 4
    assert "4 of 7 exercises passed" in said


def test_what_passed_is_remembered_for_list_and_show(root):
    run(root, "l4", 1, "half_done")
    passed = json.loads((root / "mine" / ".progress.json").read_text())["passed"]
    assert sorted(passed) == ["l1.attend", "l1.softmax", "l1.softmax_stats", "l4.merge_state"]
    assert "def merge_state(x)" in run(root, "show l4.merge_state", 0)


@pytest.mark.parametrize("line", ["l4 --solutions", "l4 --target solutions", "l4 --level value", "l4 --debug"])
def test_only_a_full_pass_of_your_own_file_is_remembered(root, line):
    run(root, line, 1, "level_value" if "level" in line else "half_done")
    assert not (root / "mine" / ".progress.json").exists()


def test_a_read_only_place_for_progress_does_not_spoil_the_verdict(root):
    (root / "mine" / ".progress.json").mkdir()
    said = run(root, "l4", 0)
    assert "All 4 exercises passed" in said


def test_ctrl_c_and_a_broken_grader_are_one_line(root):
    assert run(root, "l4", 130, "stopped") == "grade.py: stopped\n"
    said = run(root, "l4", 3, "broken")
    assert said == "grade.py: the grader itself failed: RuntimeError: out of chalk (--debug shows where)\n"


def test_a_closed_pipe_is_no_error(root):
    command = f"{sys.executable} grade.py l4 | true; exit ${{PIPESTATUS[0]}}"
    env = {**os.environ, "SCREEN": "half_done", "PYTHONPATH": str(ENGINE)}
    done = subprocess.run(["bash", "-c", command], cwd=root, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_without_triton_grading_says_so_and_the_rest_works(root, platform):
    # What Python itself has only there is looked for by modules that are loaded later.
    first = "import pathlib, shutil, sys, rich.console"
    other = f"{first}; sys.platform = '{platform}'; from drills.cli import main; sys.exit(main({{}}))"
    for argv, code in (["l4"], 3), (["list"], 0), (["reset", "l4"], 0):
        command = [sys.executable, "-c", other.format(argv)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ("needs Triton, which runs on Linux only" in done.stderr) == (code == 3)


def test_a_missing_package_is_named(root):
    code = "import sys; sys.modules['rich'] = None; from drills.cli import main; sys.exit(main(['list']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "grade.py: rich is not installed: python -m pip install -r requirements.txt\n"


def test_without_the_environment_that_is_there_one_is_told_to_enter_it(root):
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").touch()
    code = "import sys; sys.modules['rich'] = None; from drills.cli import main; sys.exit(main(['list']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.stderr.endswith(", but there is a .venv here: source .venv/bin/activate\n")


def on_a_terminal(root, line, **environment):
    """What `grade.py` writes to a terminal of 80 columns."""
    parent, child = pty.openpty()
    env = {**os.environ, "SCREEN": "half_done", "PYTHONPATH": str(ENGINE), "COLUMNS": "80", "TERM": "xterm-256color"}
    env = {key: value for key, value in (env | environment).items() if value}
    command = [sys.executable, "grade.py", *line.split()]
    process = subprocess.Popen(command, cwd=root, env=env, stdout=child, stderr=child)
    os.close(child)
    written = b""
    try:
        while piece := os.read(parent, 4096):
            written += piece
    except OSError:
        pass
    process.wait()
    os.close(parent)
    return written.decode()


def test_colour_by_flag_then_no_color_then_terminal(root):
    assert "\x1b[1;31mFAIL" in on_a_terminal(root, "l4", NO_COLOR="")
    assert "\x1b[1;31m" not in on_a_terminal(root, "l4", NO_COLOR="1")
    assert "\x1b[1;31m" not in on_a_terminal(root, "l4 --no-color", NO_COLOR="")
    plain = on_a_terminal(root, "l4 --plain", NO_COLOR="")
    assert plain.isascii()
    assert "\x1b" not in plain
    assert "FAIL" in plain


def test_an_ascii_terminal_gets_ascii(root):
    assert run(root, "l4", 1, "hostile_text", PYTHONIOENCODING="ascii").isascii()
