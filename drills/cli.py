"""The command line: finds the command that is meant, and turns what goes wrong into one line and an exit code.

Must never import torch, nor a command's module before that command is asked for. Answers before Python 3.10 too, so
that an old Python gets a line to read.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from drills import commands, ctrl_c, errors

PROGRAM = "grade.py"
STOPPED = 130
"""Exit code after Ctrl-C, as shells have it."""
VERBS = ("grade", "run", "test")
"""What is written in front of a lesson to have it graded, though nothing need be."""

GRADING = commands.Command("", "drills.grading", "grade")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `grade.py` with these arguments and returns its exit code. Shows no traceback unless --debug is given."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    if sys.version_info < (3, 10):  # noqa: UP036 - an older Python must get a line that says so
        print(f"{PROGRAM}: needs Python 3.10 or newer, this is {sys.version.split()[0]}", file=sys.stderr)
        return 3
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except errors.DrillError as error:
        _say(str(error))
        return error.code
    except KeyboardInterrupt as stop:
        if not isinstance(stop, errors.Stopped):
            _say("stopped")
        return STOPPED
    except BrokenPipeError:
        # Whoever read the output has enough; Python must not complain when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.PASSED
    except Exception as error:
        package = (getattr(error, "name", None) or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package not in ("", "drills"):
            _say(f"{package} is not installed{_where_packages_are()}")
            return errors.GRADER_FAILED
        if debug:
            import traceback

            traceback.print_exc()
        where = "" if debug else "  (--debug shows where)"
        _say(f"the grader itself failed: {type(error).__name__}: {error}{where}")
        return errors.GRADER_FAILED


def _run(arguments: list[str]) -> int:
    command = commands.named(arguments[0]) if arguments else None
    if arguments and commands.is_absent(arguments[0]):
        raise errors.WrongUse(
            f'"{arguments[0]}" is not in this copy, which is made for students: '
            f"python {PROGRAM} --help names the commands that are"
        )
    if command is not None:
        rest = arguments[1:]
        parser = _Parser(f"{PROGRAM} {command.name}", description=_sentence(command.says))
    else:
        command, rest = GRADING, arguments
        parser = _Parser(
            PROGRAM,
            usage="%(prog)s [LESSON[.EXERCISE] ...] [options]\n       %(prog)s COMMAND [options]",
            description="Grades your answers in mine/: all of them, or those that you name.",
            epilog=_epilog(commands.available()) if {"-h", "--help"} & set(arguments) else "",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    module = command.load()
    module.arguments(parser)
    _add_screen_options(parser)
    options = parser.parse_intermixed_args(rest)
    misplaced = next((name for name in getattr(options, "names", []) if commands.exists(name)), None)
    if misplaced:
        raise errors.WrongUse(f'"{misplaced}" comes first: python {PROGRAM} {misplaced} …')
    from drills.report.console import open_console

    if command is GRADING:
        _check_is_lesson(options.names)
    console = open_console(color=not options.no_color, plain=options.plain)
    with ctrl_c.interrupts():
        return module.run(options, console)


class _Parser(argparse.ArgumentParser):
    """Says of an option that there is not which one may have been meant."""

    def error(self, message: str) -> NoReturn:
        """Ends the program, with a line that fits the terminal."""
        unknown = next((word for word in message.split() if word.startswith("--")), "")
        if message.startswith("unrecognized arguments") and unknown:
            known = [name for action in self._actions for name in action.option_strings]
            near = difflib.get_close_matches(unknown.split("=")[0], known, n=1)
            message += f": did you mean {near[0]}?" if near else f": {self.prog} --help names the options"
        self.print_usage(sys.stderr)
        self.exit(errors.WrongUse.code, f"{_fitting(f'{self.prog}: error: {message}')}\n")


def _check_is_lesson(texts: list[str]) -> None:
    """WrongUse where what is no lesson looks like a command."""
    from drills import catalog

    if texts and texts[0].casefold() in VERBS:
        meant = " ".join(["python", PROGRAM, *texts[1:]])
        raise errors.WrongUse(f'no command "{texts[0]}", since grading needs none:  {meant}')
    known = {name: name for name in commands.available()} | {"help": "--help"}
    near = difflib.get_close_matches(texts[0].casefold(), known, n=1, cutoff=0.7) if texts else []
    if not near:
        return
    try:
        catalog.find(texts[0])
    except errors.WrongUse:
        meant = f"python {PROGRAM} {known[near[0]]}"
        raise errors.WrongUse(f'no lesson or command "{texts[0]}": did you mean  {meant}') from None


def _where_packages_are() -> str:
    """What to do about a missing package: enter this folder's environment if there is one, else install."""
    here = commands.ROOT / ".venv"
    if (here / "bin" / "python").exists() and Path(sys.prefix).resolve() != here.resolve():
        return f" for {sys.executable}, but there is a .venv here: source .venv/bin/activate"
    return ": python -m pip install -r requirements.txt"


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("screen")
    group.add_argument("--no-color", action="store_true", help="no colour (NO_COLOR does the same)")
    group.add_argument("--plain", action="store_true", help="no colour and ASCII only, for logs and screen readers")


def _epilog(available: dict[str, commands.Command]) -> str:
    width = max(map(len, available), default=0) + 2
    lines = [f"  {name:<{width}}{command.says}" for name, command in available.items()]
    codes = "exit codes: 0 all passed, 1 something failed, 2 wrong use, 3 the grader failed,\n"
    codes += "            4 isolation not to be had, 5 nothing was graded"
    return "\n".join(["commands:", *lines, f"  ({PROGRAM} COMMAND --help says more)", "", codes])


def _sentence(says: str) -> str:
    return f"{says[0].upper()}{says[1:]}."


def _say(text: str) -> None:
    print(_fitting(f"{PROGRAM}: {_shown(text)}"), file=sys.stderr)


def _shown(text: str) -> str:
    from drills.report import words

    return words.clean_lines(text, 1000)


def _fitting(line: str) -> str:
    """A line for standard error: wrapped on a terminal, one line elsewhere."""
    if not sys.stderr.isatty():
        from drills.report import words

        return words.clean(line, 1200)
    import shutil

    from drills.study.prose import wrapped

    return wrapped(line, shutil.get_terminal_size().columns)
