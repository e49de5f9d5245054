"""The commands that only read and write files: run as a learner runs them, on a small repository of their own."""

import json
import os
import re
import resource
import subprocess
import sys

import pytest
import sample_page
from repository_of_its_own import build, grade

from drills.study import own_code, passed

LESSON = "l4_merge_states"
LIGHT = ["list", "reset l4", "undo l4", "show l4 --anyway", "hint l4", "read l4", "quiz l4 --list", "--help", "hint -h"]


@pytest.fixture
def root(tmp_path):
    return build(tmp_path)


def mine(root, stem=LESSON):
    return root / "mine" / f"{stem}.py"


def kept(root):
    return sorted((root / "mine" / ".backup").glob("*.py"))


def write_answer(root, name="merge_state", answer="return 2 * x"):
    text = mine(root).read_text().replace(f'raise NotImplementedError("{name}: your turn")', answer)
    mine(root).write_text(text)
    return text


def test_reset_makes_a_stub_where_there_is_none(root):
    stub = mine(root).read_text()
    mine(root).unlink()
    assert "mine/l4_merge_states.py is new." in grade(root, "reset l4")
    assert mine(root).read_text() == stub
    assert not kept(root)


def test_reset_keeps_the_old_file_and_undo_swaps(root):
    stub, answer = mine(root).read_text(), write_answer(root)
    said = grade(root, "reset l4")
    assert mine(root).read_text() == stub
    assert [path.read_text() for path in kept(root)] == [answer]
    assert f"mine/.backup/{kept(root)[0].name}" in said
    said = grade(root, "undo")
    assert f"{kept(root)[0].name})." in said
    assert "Older texts are in mine/.backup/" in said
    assert mine(root).read_text() == answer
    grade(root, "undo")
    assert mine(root).read_text() == stub
    assert len(kept(root)) == 3


def test_reset_of_a_stub_changes_nothing(root):
    assert "is the stub already" in grade(root, "reset l4")
    assert not kept(root)


def test_undo_says_that_it_swaps_and_where_older_texts_are(root):
    said = grade(root, "undo --help")
    assert "Swaps the last two texts" in said
    assert "mine/.backup/" in said


def test_undo_of_one_lesson_leaves_the_others(root):
    answer = write_answer(root)
    grade(root, "reset l4")
    mine(root, "l1_first_steps").write_text("x = 1\n")
    grade(root, "reset l1")
    grade(root, "undo l4")
    assert mine(root).read_text() == answer
    assert mine(root, "l1_first_steps").read_text() != "x = 1\n"


def test_nothing_to_undo_is_one_line(root):
    assert grade(root, "undo", 2) == "grade.py: there is nothing to undo\n"


def test_reset_of_one_exercise_leaves_every_other_byte(root):
    stub = mine(root).read_text()
    write_answer(root, "merge_state")
    other = write_answer(root, "merge_states", "y = x\n    return y  # done")
    grade(root, "reset l4.merge_state")
    now = mine(root).read_text()
    assert now == other.replace("return 2 * x", 'raise NotImplementedError("merge_state: your turn")')
    assert now != stub
    assert kept(root)[0].read_text() == other


def test_reset_of_one_exercise_keeps_bom_and_windows_line_endings(root):
    text = "\ufeff" + write_answer(root).replace("\n", "\r\n")
    mine(root).write_bytes(text.encode())
    grade(root, "reset l4.merge_state")
    expected = text.replace("return 2 * x", 'raise NotImplementedError("merge_state: your turn")')
    assert mine(root).read_bytes() == expected.encode()


def test_reset_brings_back_a_function_that_was_removed(root):
    mine(root).write_text("x = 1")
    grade(root, "reset l4.merge_states")
    assert mine(root).read_text().startswith("x = 1\n\n\ndef merge_states(x):")


def test_reset_of_one_exercise_in_a_broken_file_changes_nothing(root):
    mine(root).write_text("def merge_state(x:\n")
    assert "mine/l4_merge_states.py:1: " in grade(root, "reset l4.merge_state", 2)
    assert mine(root).read_text() == "def merge_state(x:\n"


def test_a_full_disk_loses_nothing(root):
    answer = write_answer(root)
    (root / "mine" / ".backup").write_text("a file where the folder should be")
    said = grade(root, "reset l4", 3)
    assert said.startswith("grade.py: mine/.backup cannot be written: ")
    assert "Nothing was changed." in said
    assert mine(root).read_text() == answer


def test_a_folder_in_place_of_the_file_is_one_line(root):
    mine(root).unlink()
    mine(root).mkdir()
    assert "cannot be read" in grade(root, "reset l4", 2)


def test_list_shows_states_without_running_anything(root):
    write_answer(root, "merge_states", "import os; os._exit(9)")
    said = grade(root, "list")
    assert re.search(r"merge_state +not started +mine/l4_merge_states.py:\d+", said)
    assert re.search(r"merge_states +begun", said)
    assert said.rstrip().endswith("0 of 5 exercises passed")


def test_list_shows_what_is_wrong_with_a_file(root):
    mine(root).write_text("x = (\n")
    mine(root, "l1_first_steps").unlink()
    said = grade(root, "list")
    assert "mine/l4_merge_states.py:1  '(' was never closed" in said
    assert "mine/l1_first_steps.py  is not there" in said


def test_show_waits_until_yours_passes(root):
    said = grade(root, "show l4.merge_state", 2)
    assert "merge_state has not passed yet" in said
    (root / "mine" / ".progress.json").write_text('{"passed": {"l4.merge_state": {}}}')
    said = grade(root, "show l4.merge_state")
    assert said.count("def merge_state(x)") == 2
    assert "def merge_states(x)" not in said


def pass_two(root):
    """Two exercises pass, and the first of them is broken afterwards."""
    write_answer(root, "merge_state")
    write_answer(root, "merge_state_in_place")
    codes = own_code.codes(mine(root), ["merge_state", "merge_state_in_place"])
    kept_codes = {f"l4.{name}": {"when": "", "sha256": passed.fingerprint(code)} for name, code in codes.items()}
    (root / "mine" / ".progress.json").write_text(json.dumps({"passed": kept_codes}))
    mine(root).write_text(mine(root).read_text().replace("return 2 * x", "return 3 * x", 1))


def test_list_counts_the_code_that_is_there_now(root):
    pass_two(root)
    said = grade(root, "list")
    assert re.search(r"merge_state +passed once +changed since +mine/l4_merge_states.py:\d+\n", said)
    assert re.search(r"merge_state_in_place +passed +mine/l4_merge_states.py:\d+\n", said)
    assert re.search(r"l4 .* 1 of 3 passed\n", said)
    assert said.rstrip().endswith("1 of 5 exercises passed · 1 more passed once and changed since")


def test_list_says_that_a_stub_is_back(root):
    pass_two(root)
    grade(root, "reset l4")
    assert re.search(r"merge_state +passed once +the stub again", grade(root, "list"))


def test_list_ticks_nothing_in_a_file_that_is_broken(root):
    pass_two(root)
    mine(root).write_text("x = (\n")
    assert grade(root, "list").rstrip().endswith("0 of 5 exercises passed · 2 more passed once and changed since")


def test_the_hint_is_for_what_was_broken_after_it_passed(root):
    write_hints(root)
    pass_two(root)
    assert "l4 · merge_state · hint 1 of 3" in grade(root, "hint")
    mine(root).write_text(mine(root).read_text().replace("return 3 * x", "return 2 * x"))
    assert "l4 · merge_states · hint 1 of 3" in grade(root, "hint")


def write_hints(root):
    """A page with hints for every exercise of l4, in place of the small one."""
    hints = sample_page.PARTS["Hints"]
    third = hints[hints.index("### merge_states") :].replace("merge_states", "merge_state_in_place")
    (root / "content" / f"{LESSON}.md").write_text(sample_page.text(Hints=f"{hints}\n{third}"), encoding="utf-8")


@pytest.mark.parametrize("columns", ["80", "140"])
def test_show_anyway_shows_both_files(root, columns):
    said = grade(root, "show l4 --anyway", COLUMNS=columns)
    assert said.count("merge_states_kernel(") == 2
    assert max(map(len, said.split("\n"))) <= int(columns)


def test_an_unknown_lesson_and_an_unknown_option_are_wrong_use(root):
    assert grade(root, "reset l5", 2) == 'grade.py: no lesson "l5": there are l1 and l4\n'
    assert "unrecognized arguments: --fast" in grade(root, "list --fast", 2)
    assert 'grade.py: "list" comes first' in grade(root, "--no-color list", 2)


def test_help_names_only_commands_that_are_there(root):
    (root / "drills" / "study" / "undo.py").unlink()
    said = grade(root, "--help")
    assert "  reset " in said
    assert "  undo " not in said
    assert '"undo" is not in this copy' in grade(root, "undo", 2)


@pytest.mark.parametrize("line", LIGHT)
def test_light_commands_import_nothing_heavy(root, line):
    guard = root / "guard"
    guard.mkdir()
    for name in ("torch", "triton", "numpy", "pytest"):
        (guard / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')")
    command = [sys.executable, "grade.py", *line.split()]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(guard)}, capture_output=True, text=True, check=False
    )
    assert "was imported" not in done.stderr + done.stdout


def test_list_answers_at_once(root):
    """In processor time, so that what else runs on the machine does not count."""
    grade(root, "list", PYTHONDONTWRITEBYTECODE="")
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        grade(root, "list")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) <= 0.35
