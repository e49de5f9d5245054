"""`python -m pytest` with the plugin: the same verdicts as grade.py's, shown by pytest."""

import pytest
import tiny_lesson

STEM = "l97_by_hand"


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    entry = tiny_lesson.build(tmp_path_factory.mktemp("tiny"), STEM)
    tiny_lesson.answer(entry, entry.root / "wrong", ("2 * tl.load", "3 * tl.load"))
    tiny_lesson.written(entry, entry.root / "untouched", entry.stub)
    tiny_lesson.written(entry, entry.root / "broken", "def double(x:\n")
    return entry


@pytest.fixture
def run_pytest(entry, monkeypatch, capfd):
    """Exit code and output of pytest in the lesson's folder."""

    def run(*arguments):
        monkeypatch.chdir(entry.root)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        code = pytest.main(["-p", "drills.pytest_plugin", "-p", "no:cacheprovider", "-q", "tests", *arguments])
        return code, "".join(capfd.readouterr())

    return run


def test_the_solution_is_graded_unless_told_otherwise(run_pytest):
    code, output = run_pytest("--device", "cpu")
    assert code == 0 and "9 passed" in output


def test_a_failure_is_shown_without_a_traceback(run_pytest):
    code, output = run_pytest("--target", "wrong", "--seed", "3")
    assert code == 1
    assert "likely    That is three times x." in output
    assert "Error" not in output and "drills/" not in output


@pytest.mark.parametrize(
    "target, expected, words",
    [("untouched", 5, "deselected"), ("nowhere", 2, "no lesson's file is there"), ("broken", 2, f"{STEM}.py:1")],
)
def test_a_target_with_nothing_to_grade(run_pytest, target, expected, words):
    code, output = run_pytest("--target", target)
    assert code == expected and words in output


def test_a_test_that_grades_nothing_is_no_success(run_pytest, entry):
    (entry.root / "tests" / f"test_{STEM}.py").rename(entry.root / "kept")
    stem = "l98_unmarked"
    odd = tiny_lesson.build(entry.root, stem, tiny_lesson.TESTS + "\n\ndef test_of_nothing(drill):\n    pass\n")
    code, output = run_pytest()
    assert code == 3 and "does not say which exercise and level it grades" in output
    odd.tests.unlink()
    (entry.root / "kept").rename(entry.root / "tests" / f"test_{STEM}.py")
