"""The table of commands: which module holds each, so that only the one that was asked for is imported.

A command's module has `arguments(parser)`, which adds its own arguments, and `run(options, console) -> int`, which
returns an exit code; it raises `drills.errors.DrillError` for what the user should read in one line. Must never import
a command's module before it is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent


class CommandModule(Protocol):
    """What a command's module must have."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the command's arguments."""

    def run(self, options: argparse.Namespace, console: Console) -> int:
        """Carries the command out and returns the exit code."""


@dataclass(frozen=True)
class Command:
    """A subcommand: its name, its module and what `--help` says of it. needs: a folder without which it is none."""

    name: str
    module: str
    says: str
    needs: str = ""

    @property
    def exists(self) -> bool:
        """Whether its module, and what it needs, is there; found without importing it."""
        if not (ROOT / self.needs).is_dir():
            return False
        try:
            return importlib.util.find_spec(self.module) is not None
        except ModuleNotFoundError:  # its package is not there either
            return False

    def load(self) -> CommandModule:
        """Imports its module."""
        return importlib.import_module(self.module)


TABLE = (
    Command("list", "drills.study.listing", "lessons, exercises, progress"),
    Command("read", "drills.study.read", "a lesson's page in the terminal"),
    Command("hint", "drills.study.hint", "the next hint for the exercise you are at"),
    Command("quiz", "drills.study.quiz", "a lesson's self-check, question by question"),
    Command("watch", "drills.study.watch", "grade again whenever you save"),
    Command("reset", "drills.study.reset", "the stub again; your file is kept"),
    Command("undo", "drills.study.undo", "bring back what the last reset or undo replaced"),
    Command("show", "drills.study.show", "yours and the solution, once yours passes", needs="solutions"),
    Command("bench", "drills.bench.command", "speed on a GPU: mine, solution, copy bandwidth, peers"),
    Command("batch", "drills.batch.command", "instructors: grade a folder of submissions"),
    Command("merge", "drills.batch.merge", "instructors: put the shards of a batch together"),
    Command("release", "drills.batch.release", "instructors: a copy for students, without the solutions"),
    Command("autograder", "drills.batch.autograder", "instructors: the zip that Gradescope grades with"),
    Command("doctor", "drills.study.doctor", "is this machine fit"),
    Command("book", "drills.book.command", "the pages as a web site"),
    Command("check", "drills.author.check", "authors: everything that must hold of the lessons"),
)


def available() -> dict[str, Command]:
    """The commands whose modules are there, by name."""
    return {command.name: command for command in TABLE if command.exists}


def named(name: str) -> Command | None:
    """The command called `name`, if its module is there."""
    return next((command for command in TABLE if command.name == name and command.exists), None)


def is_absent(name: str) -> bool:
    """Whether there is a command of this name, but not in this copy."""
    return any(command.name == name and not command.exists for command in TABLE)


def exists(name: str) -> bool:
    """Whether the command called `name` is there."""
    return named(name) is not None
