"""A copy for students holds no solution, and everything that a learner needs works in it."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from drills import catalog, stubs
from drills.batch import autograder, release
from drills.sandbox import isolation

ROOT = Path(__file__).resolve().parents[2]
LINK = r"\]\(([\w./-]+\.(?:md|svg))(?:#[^)]*)?\)"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "drills"
    grade(ROOT, "release", str(out))
    return out


def grade(root, *words, code=0):
    """Runs grade.py there; what it said."""
    env = {**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "grade.py", *words]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_no_line_of_a_solution_is_in_it(copy):
    """Lines of Triton that stand between a solution's markers and nowhere in its stub."""
    assert not (copy / "solutions").exists() and not (copy / "tests" / "answers").exists()
    secret = set()
    for lesson in catalog.lessons():
        text = lesson.solution.read_text()
        lines = text.split("\n")
        for block in stubs.find_blocks(text, lesson.stem):
            secret |= {line.strip() for line in lines[block.first : block.last - 1] if "tl." in line}
    secret -= {line.strip() for lesson in catalog.lessons() for line in lesson.stub.split("\n")}
    assert len(secret) > 100
    for path in copy.rglob("*.py"):
        given = {line.strip() for line in path.read_text().split("\n")}
        assert not given & secret, (path, given & secret)


def test_only_what_a_learner_needs_is_in_it(copy):
    assert {path.name for path in copy.iterdir()} == {
        *("LICENSE", "README.md", "grade.py", "pyproject.toml", "requirements.txt", ".gitignore"),
        *("content", "drills", "mine", "tests", ".devcontainer", "colab.ipynb"),
    }
    assert not {"author", "batch", "book"} & {path.name for path in (copy / "drills").iterdir()}
    assert not list(copy.rglob("__pycache__")) and not list(copy.rglob(".git"))


def test_every_link_of_its_pages_leads_somewhere(copy):
    for page in [*copy.glob("content/*.md"), copy / "README.md"]:
        for link in re.findall(LINK, page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)


def test_its_pages_name_no_file_or_command_that_is_not_in_it(copy):
    for page in copy.glob("content/*.md"):
        text = page.read_text()
        paths = re.findall(r"\b(?:solutions|tests|drills|mine|content)/[\w./-]*\w", text)
        modules = [f"{module.replace('.', '/')}.py" for module in re.findall(r"python -m (drills[\w.]+)", text)]
        for path in paths + modules:
            assert (copy / path).exists(), (page.name, path)
        assert not re.search(r"grade\.py (check|show|batch|merge|release|book)\b|--solutions", text), page.name


def test_its_readme_is_true(copy):
    text = (copy / "README.md").read_text()
    for word in ("--solutions", "grade.py show", "grade.py batch", "INSTRUCTORS", "<!--"):
        assert word not in text
    assert ".venv/bin/python grade.py\n" in text
    readme = (ROOT / "README.md").read_text()
    assert all(old in readme for old in release.CUTS)


@pytest.fixture(scope="module")
def one_lesson(tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "one"
    grade(ROOT, "release", str(out), "l2")
    return out


@pytest.mark.parametrize("which", ["copy", "one_lesson"])
def test_everything_that_its_readme_names_is_in_it(which, request):
    copy = request.getfixturevalue(which)
    text = (copy / "README.md").read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    paths = [one for one in re.findall(r"`([\w./-]+)`", text) if re.search(r"\w/|\.(py|md|txt|yml|ipynb|html)$", one)]
    assert len(links) >= 4 and len(paths) >= 3
    for path in {*links, *paths} - {"mine/.backup/"}:  # the first reset makes that one
        assert (copy / path).exists(), path
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert module in ("pip", "venv", "pytest") or (copy / f"{module.replace('.', '/')}.py").is_file(), module
    given = set(re.findall(r"python grade\.py ([a-z]\w*)", text + (copy / "colab.ipynb").read_text()))
    named = set(re.findall(r"\bl\d\b", text + (copy / "colab.ipynb").read_text()))
    assert named and named <= {one.short for one in catalog.lessons(copy)}
    there = set(re.findall(r"^  (\w+) ", grade(copy, "--help"), re.MULTILINE))
    assert given <= there | named
    for line in (copy / "requirements.txt").read_text().splitlines():
        assert line.startswith("#") or f"{line.split('=')[0]}" in text
    assert "the book" not in text


def test_pages_hints_and_lists_are_there(copy):
    assert "not started" in grade(copy, "list")
    assert "hint 1 of 3" in grade(copy, "hint", "l4")
    assert "FlashInfer" in grade(copy, "read", "l4", "--plain")
    assert "attend_shared" in grade(copy, "--help") or "commands:" in grade(copy, "--help")
    said = grade(copy, "--help") + grade(copy, "bench", "--help")
    assert "--solutions" not in said and not re.search(r"^  (batch|merge|release|check|show) ", said, re.MULTILINE)


def test_a_stub_can_be_had_again(copy):
    mine = copy / "mine" / "l4_merge_states.py"
    stub = mine.read_text()
    assert stub == catalog.find("l4").lesson.stub
    mine.write_text(stub + "x = 1\n")
    assert "is the stub again" in grade(copy, "reset", "l4")
    assert mine.read_text() == stub
    grade(copy, "undo")
    assert mine.read_text().endswith("x = 1\n")
    mine.write_text(stub.replace("raise NotImplementedError", "return NotImplementedError", 1))
    grade(copy, "reset", "l4.merge_state")
    assert mine.read_text() == stub


def test_what_is_not_in_it_is_kindly_said_not_to_be(copy):
    for line in ("show l4 --anyway", "batch x", "book", "--solutions", "l4 --solutions", "bench --solutions"):
        assert "not in this copy" in grade(copy, *line.split(), code=2)


def test_an_answer_is_graded_in_it(copy, tmp_path):
    work = tmp_path / "copy"
    shutil.copytree(copy, work)
    assert "begun" in grade(work, code=5)
    shutil.copy(ROOT / "solutions" / "l1_online_softmax.py", work / "mine")
    said = grade(work, "l1.softmax", "--level", "value", "--device", "cpu")
    assert "PASS" in said and "grade.py show" not in said
    for level in [one.name for one in isolation.probe() if one.holds]:
        said = grade(work, "l1.softmax", "--level", "value", "--device", "cpu", "--isolation", level)
        assert "PASS" in said and f"isolation {level}" in said


def test_some_lessons_alone(tmp_path):
    grade(ROOT, "release", str(tmp_path / "one"), "l1")
    said = grade(tmp_path / "one", "list")
    assert "l1" in said and "l4" not in said
    assert not list((tmp_path / "one").rglob("*l4_merge_states*"))
    links = re.findall(LINK, (tmp_path / "one" / "content" / "l1_online_softmax.md").read_text())
    assert links and all((tmp_path / "one" / "content" / link).exists() for link in links)


def test_lessons_may_be_left_out_and_are_not_called_required(capsys):
    for command in (release, autograder):
        parser = argparse.ArgumentParser()
        command.arguments(parser)
        with pytest.raises(SystemExit):
            parser.parse_args([])
        assert re.search(r"required: OUT[.zip]*\n", capsys.readouterr().err) and parser.parse_args(["x"]).names == []


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    assert "not empty" in grade(ROOT, "release", str(tmp_path), code=2)
    assert "lies in this repository" in grade(ROOT, "release", str(ROOT / "release"), code=2)


def test_links_to_pages_that_are_not_there_become_words():
    there = frozenset({"a.md"})
    text = "see [a](a.md#x), [b](b.md#y), and more ([how](c.md)). [site](https://example.org/b.md)"
    assert release.without_broken_links(text, there) == (
        "see [a](a.md#x), b, and more. [site](https://example.org/b.md)"
    )
