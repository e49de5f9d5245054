"""The dev container and the Colab notebook: both can be read, and every command, file and option in them is there."""

import argparse
import json
import re
import shlex
from pathlib import Path

import pytest

from drills import catalog, cli, commands, pytest_plugin

ROOT = Path(__file__).resolve().parents[2]
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
NOTEBOOK = json.loads((ROOT / "colab.ipynb").read_text(encoding="utf-8"))
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"]]
CODE = [text for text, cell in zip(CELLS, NOTEBOOK["cells"], strict=True) if cell["cell_type"] == "code"]
SETTINGS = CONTAINER["customizations"]["vscode"]["settings"]


def grade_commands():
    texts = [*CELLS, *(CONTAINER[name] for name in ("postCreateCommand", "postAttachCommand"))]
    return sorted({found for text in texts for found in re.findall(r"python grade\.py ([^\n`]*)", text)})


@pytest.mark.parametrize("line", grade_commands())
def test_a_command_can_be_given(line):
    words = shlex.split(line)
    command = commands.named(words[0]) or cli.GRADING
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.load().arguments(parser)
    options = parser.parse_args(words if command is cli.GRADING else words[1:])
    for name in [*getattr(options, "names", []), *filter(None, [getattr(options, "lesson", None)])]:
        catalog.find(name)


def test_both_use_the_commands_that_a_newcomer_needs():
    assert {"doctor", "list", "hint l1"} <= set(grade_commands())


def test_the_notebook_is_of_the_form_that_colab_reads():
    assert NOTEBOOK["nbformat"] == 4
    for cell in NOTEBOOK["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_notebook_clones_writes_a_stub_and_grades_it():
    order = [
        next(i for i, cell in enumerate(CODE) if mark in cell) for mark in ("git clone", "%%writefile", "grade.py l1")
    ]
    assert order == sorted(order)
    written = [cell.split("\n")[0].split()[1] for cell in CODE if cell.startswith("%%writefile")]
    assert written and all((ROOT / path).is_file() and path.startswith("mine/") for path in written)


def test_the_container_installs_what_is_tested():
    pinned = re.search(r"^torch==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)[1]
    assert f"torch=={pinned} " in CONTAINER["onCreateCommand"]
    assert "-r requirements.txt" in CONTAINER["onCreateCommand"]


def test_the_test_view_is_of_what_is_in_mine():
    words = SETTINGS["python.testing.pytestArgs"]
    parser = pytest.Parser(_ispytest=True)
    pytest_plugin.pytest_addoption(parser)
    given = parser.parse_known_args([word for word in words if not word.startswith("--ignore")])
    assert SETTINGS["python.testing.pytestEnabled"] is True
    assert (given.target, given.file_or_dir) == ("mine", ["tests"])
    ignored = [word.partition("=")[2] for word in words if word.startswith("--ignore=")]
    assert all((ROOT / path).is_dir() for path in [*given.file_or_dir, *ignored, given.target])


@pytest.mark.parametrize("remarks", [CELLS[0], " ".join(CONTAINER["customizations"]["remarks"])])
def test_what_was_not_tried_is_said(remarks):
    assert re.search(r"could be tried|Not tried", remarks)
