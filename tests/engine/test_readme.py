"""Every command, file, option and package that the README names is there."""

import argparse
import re
import shlex
from pathlib import Path

import pytest

from drills import catalog, cli, commands

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = sorted(set(re.findall(r"`(?:\.venv/bin/)?python grade\.py ?([^`]*)`", README)))
PATHS = sorted(set(re.findall(r"\]\(([^)#:]+)\)|`((?:mine|content|solutions|tests|drills|\.ci)/[\w./]+)`", README)))


def test_there_are_two_set_up_commands_and_ci_runs_what_they_run():
    lines = [line for fence in FENCES for line in fence.splitlines() if not line.startswith("#")]
    assert len(lines) == 2
    script = (ROOT / ".ci" / "run").read_text()
    for line in lines:
        venv, install, what = line.split(" && ")
        assert venv == "python3 -m venv .venv"
        assert install == ".venv/bin/pip install -r requirements.txt"
        assert what in script


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_that_is_named_can_be_given(line, tmp_path):
    words = shlex.split(line.replace("DIR", str(tmp_path)))
    available = commands.available()
    command = available[words.pop(0)] if words and words[0] in available else cli.GRADING
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.load().arguments(parser)
    if words != ["--help"]:
        options = parser.parse_args(words)
        for name in [*getattr(options, "names", []), *filter(None, [getattr(options, "lesson", None)])]:
            catalog.find(name)


@pytest.mark.parametrize("path", ["".join(pair) for pair in PATHS])
def test_a_file_that_is_named_is_there(path):
    if "X" not in path:
        assert (ROOT / path).exists()


def test_every_option_that_is_named_is_an_option_of_grading():
    parser = argparse.ArgumentParser()
    cli.GRADING.load().arguments(parser)
    for option in set(re.findall(r"`(--[a-z-]+)", README)):
        assert option in parser.format_help()


def test_every_package_that_is_installed_has_its_reason():
    table = README.split("## Dependencies")[1]
    pinned = re.findall(r"^(\w[\w-]*)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    for package in pinned:
        assert re.search(rf"^\|[^|]*\b{package}\b", table, re.MULTILINE), package


def test_the_exit_codes_are_those_of_the_errors():
    from drills import errors

    for code in (errors.PASSED, errors.FAILED, errors.WRONG_USE, errors.GRADER_FAILED, errors.NOTHING_GRADED):
        assert re.search(rf"\b{code} [a-z]", README.split("Exit codes:")[1])
