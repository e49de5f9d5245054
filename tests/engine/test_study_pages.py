"""`hint`, `read` and `quiz`, run as a learner runs them, on a small repository with one whole page."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
import sample_page
from repository_of_its_own import build, grade


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = build(tmp_path_factory.mktemp("repository"))
    hints = sample_page.PARTS["Hints"]
    third = hints[hints.index("### merge_states") :].replace("merge_states", "merge_state_in_place")
    (root / "content" / "l4_merge_states.md").write_text(sample_page.text(Hints=f"{hints}\n{third}"), encoding="utf-8")
    return root


@pytest.fixture
def root(repository):
    for path in (repository / "mine").glob(".progress*"):
        path.unlink()
    return repository


def progress(root):
    return json.loads((root / "mine" / ".progress.json").read_text())


def passed(root, *names):
    entry = {"when": "2026-01-01T00:00:00+00:00", "sha256": ""}
    (root / "mine" / ".progress.json").write_text(json.dumps({"passed": {f"l4.{name}": entry for name in names}}))


def quiz(root, answers, *words):
    env = {**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "grade.py", "quiz", "l4", *words]
    return subprocess.run(
        command, cwd=root, env=env, input=answers, capture_output=True, text=True, timeout=60, check=False
    )


RIGHT = "11\nb\n3 0.5\n0.48\n43\n-inf\n"


def test_hints_come_one_at_a_time(root):
    said = [grade(root, "hint l4") for _ in range(4)]
    for stage in (1, 2, 3):
        assert f"l4 · merge_state · hint {stage} of 3" in said[stage - 1]
        assert f"Stage {stage} of merge_state: 2^(s_a - s)." in said[stage - 1]
        assert f"Stage {stage % 3 + 1}" not in said[stage - 1]
    assert "hint 3 of 3 (seen before)" in said[3]
    assert progress(root)["hints"] == {"l4.merge_state": 3}


def test_the_hint_is_for_the_first_exercise_that_has_not_passed(root):
    passed(root, "merge_state")
    assert "l4 · merge_state_in_place · hint 1 of 3" in grade(root, "hint l4")


def test_an_exercise_can_be_named_and_all_its_hints_asked_for(root):
    said = grade(root, "hint l4.merge_states --all")
    assert all(f"merge_states · hint {stage} of 3" in said for stage in (1, 2, 3))
    assert progress(root)["hints"] == {"l4.merge_states": 3}


def test_nothing_is_left_to_hint_at(root):
    passed(root, "merge_state", "merge_state_in_place", "merge_states")
    assert "every exercise has passed" in grade(root, "hint l4")


def test_a_page_without_hints_is_said(root):
    assert "content/l1_first_steps.md has no hints for double" in grade(root, "hint l1", 2)


def test_reading_keeps_hints_and_answers_folded(root):
    said = grade(root, "read l4")
    assert "python grade.py hint l4" in said
    assert "python grade.py quiz l4" in said
    assert "Stage 1" not in said
    assert "v = a/b" in said
    assert "answer: 11" not in said


def test_reading_everything_unfolds(root):
    said = grade(root, "read l4 --all")
    assert "Stage 3 of merge_states" in said
    assert "It is 10 + 1." in said
    assert "type: number" not in said


def test_one_part_of_a_page_can_be_read(root):
    assert grade(root, "read l4#the-first-pitfall").split() == ["The", "first", "pitfall", "Averaging."]
    assert 'no heading "nowhere"' in grade(root, "read content/l4_merge_states.md#nowhere", 2)


def test_what_is_printed_has_no_escapes_and_no_blanks_at_the_end(root):
    said = grade(root, "read l4")
    assert "\x1b" not in said
    assert not [line for line in said.splitlines() if line != line.rstrip()]
    assert max(map(len, said.splitlines())) <= 80


def test_a_malformed_page_is_one_line(root):
    page = root / "content" / "l4_merge_states.md"
    whole = page.read_text(encoding="utf-8")
    page.write_text(whole.replace("answer: 11", "answer: eleven"), encoding="utf-8")
    try:
        said = grade(root, "read l4", 3)
    finally:
        page.write_text(whole, encoding="utf-8")
    assert "the page is malformed: content/l4_merge_states.md:" in said
    assert "answer must be a number" in said


def test_a_quiz_from_a_pipe_keeps_the_score(root):
    done = quiz(root, RIGHT)
    assert done.returncode == 0
    assert done.stdout.count("Right.") == 6
    assert done.stdout.endswith("l4: 6 of 6 right.\n")
    assert progress(root)["quiz"] == {"l4": {"right": 6, "of": 6}}
    assert "Last time: 6 of 6." in quiz(root, "", "--list").stdout


def test_wrong_answers_get_their_reason_and_the_explanation(root):
    said = quiz(root, "10.69\na\n3\n9\n\n-inf\n").stdout
    assert "Not quite. 10.69: ln 2: the natural rule. The answer is 11 (base 2)." in said
    assert "It is 10 + 1." in said
    assert "a: that is NaN. The answer is b)" in said
    assert "Skipped. The answer is 43." in said
    assert said.endswith("l4: 1 of 6 right.\n")


def test_an_answer_from_a_pipe_that_cannot_be_read_is_neither_right_nor_wrong(root):
    done = quiz(root, RIGHT.replace("11", "eleven"))
    assert done.returncode == 0
    assert "This cannot be read, and is not counted. Type a number" in done.stdout
    assert "The answer is 11 (base 2)." in done.stdout
    assert "Not quite" not in done.stdout
    assert done.stdout.endswith("l4: 5 of 5 right; 1 answer could not be read. Nothing is kept.\n")
    assert not (root / "mine" / ".progress.json").exists()


@pytest.mark.parametrize("answers", ["", "11\n", "11\nq\n", "11\nb"])
def test_a_quiz_that_ends_early_is_no_error_and_no_score(root, answers):
    done = quiz(root, answers)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Nothing is kept." in done.stdout
    assert not (root / "mine" / ".progress.json").exists()


def test_the_list_names_every_question(root):
    said = quiz(root, "", "--list").stdout
    assert "1  number  What is s, when s_a = s_b = 10?" in said
    assert len(said.strip().splitlines()) == 6


def test_a_page_without_questions_is_said(root):
    assert "content/l1_first_steps.md has no questions" in grade(root, "quiz l1", 2)


def test_a_folder_that_cannot_be_written_spoils_nothing(root):
    (root / "mine" / ".progress.json").mkdir()
    (root / "mine" / ".progress.json" / "x").write_text("")
    said = grade(root, "hint l4")
    assert "Stage 1" in said
    assert "kept" in said
    for path in (root / "mine").glob(".progress*"):
        if path.is_dir():
            (path / "x").unlink()
            path.rmdir()


def on_a_terminal(root, *words):
    """Starts the command on a terminal of its own; returns the process and the terminal's other end."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "PAGER": "cat", "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("NO_COLOR", None)
    command = [sys.executable, "grade.py", *words]
    process = subprocess.Popen(
        command, cwd=root, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    return process, ours


def read_until(ours, words, seconds=20.0):
    """What the terminal shows until `words` appear, or until it is closed."""
    seen, limit = "", time.monotonic() + seconds
    while words not in seen and time.monotonic() < limit:
        try:
            seen += os.read(ours, 4096).decode("utf-8", "replace")
        except OSError:
            break
    return seen


def test_on_a_terminal_what_cannot_be_read_is_asked_again(root):
    process, ours = on_a_terminal(root, "quiz", "l4")
    read_until(ours, "a number >")
    os.write(ours, b"eleven\n")
    assert "Type a number" in read_until(ours, "a number >")
    os.write(ours, b"11\n")
    assert "Right." in read_until(ours, "question 2")
    os.write(ours, b"q\n")
    assert "Stopped after 1 of 6" in read_until(ours, "kept")
    assert process.wait(20) == 0
    os.close(ours)


def test_control_c_in_a_quiz_is_no_traceback(root):
    process, ours = on_a_terminal(root, "quiz", "l4")
    read_until(ours, "a number >")
    process.send_signal(signal.SIGINT)
    said = read_until(ours, "grade.py: ")
    assert "Stopped after 0 of 6" in said
    assert "grade.py: stopped" not in said and "Traceback" not in said
    assert process.wait(20) == 130
    os.close(ours)


def test_a_refusal_on_a_terminal_cuts_no_word_and_no_command(root):
    process, ours = on_a_terminal(root, "show", "l4")
    lines = [line.strip() for line in read_until(ours, "--anyway\r\n").split("\r\n")]
    assert process.wait(20) == 2
    os.close(ours)
    assert max(map(len, lines)) <= 80
    assert len(lines) > 2
    assert any("python grade.py l4" in line for line in lines)
    assert any("add --anyway" in line for line in lines)


def test_on_a_terminal_a_page_goes_through_the_pager_in_color(root):
    process, ours = on_a_terminal(root, "read", "l4")
    said = read_until(ours, "nothing of the kind")
    process.wait(20)
    os.close(ours)
    assert "\x1b[" in said
    assert "A paper" in said
