"""Authors: the matrix of known answers. Grades them, and keeps their table, tests/answers/README.md.

    python -m drills.author.matrix [LESSON | FILE …]    grade, and say what does not come out as its header says
    python -m drills.author.matrix --table              write the table from the headers

The table holds what the headers say, and the grading holds the headers to it. Exit code 0 if all is well, else 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from drills import catalog
from drills.author import answers
from drills.author.answers import FOLDER, Answer, Outcome
from drills.errors import DrillError, WrongUse
from drills.files import write_atomically

TABLE = FOLDER / "README.md"
HEAD = """# Known answers

Written by `python -m drills.author.matrix --table`; checked in CI to be current. `right/` holds lessons written in
other ways, which must pass at every level. `wrong/` holds one misconception a file, which must fail at the level named
here, with the diagnosis named here: the id of a known mistake, or the kind of failure where the instruments or the form
check say it all. How to add one: see [CONTRIBUTING.md](../../CONTRIBUTING.md).
"""


def table(known: Sequence[Answer]) -> str:
    """The Markdown text: a count, then a table a lesson."""
    right = sum(one.right for one in known)
    lines = [HEAD, f"{right} right answers and {len(known) - right} wrong ones."]
    for stem in sorted({one.stem for one in known}):
        here = [one for one in known if one.stem == stem]
        lines.append(f"\n## {stem}\n")
        lines += [f"- right: `{one.name}`: {one.says}" for one in here if one.right]
        lines += ["\n| wrong answer | exercise | what is wrong | level | diagnosis |", "|---|---|---|---|---|"]
        for one in here:
            if not one.right:
                cells = (f"`{one.name}`", one.exercise, one.says, one.level, one.diagnosis)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def is_current() -> bool:
    """Whether the committed table is the one that the headers make."""
    return TABLE.is_file() and TABLE.read_text(encoding="utf-8") == table(answers.find())


def problems(outcomes: Sequence[Outcome]) -> list[str]:
    """Everything that is not as it must be, a line each."""
    return [one.problem for one in outcomes if one.problem] + answers.confused(outcomes)


def chosen(names: Sequence[str]) -> list[Answer]:
    """The answers that are meant: of a lesson, or of one file (a name that ends in .py); all if there is no name."""
    found: list[Answer] = []
    for name in names or ("*",):
        if not name.endswith(".py"):
            found += answers.find("*" if name == "*" else catalog.find(name).lesson.stem)
        elif not Path(name).is_file():
            raise WrongUse(f"there is no file {name}")
        else:
            found.append(answers.read(Path(name).resolve()))
    return found


def main(arguments: Sequence[str]) -> int:
    """0 if all is well, 1 if not, 2 for wrong use, 3 if the grader failed."""
    parser = argparse.ArgumentParser(prog="python -m drills.author.matrix", description="Grades known answers.")
    parser.add_argument(
        "names", nargs="*", metavar="LESSON | FILE", help="a lesson, or one answer's file; all if left out"
    )
    parser.add_argument("--table", action="store_true", help="write tests/answers/README.md from the headers instead")
    parser.add_argument("--seed", type=int, default=answers.SEED, metavar="N", help="other inputs than those of CI")
    options = parser.parse_args(arguments)
    try:
        if options.table:
            write_atomically(TABLE, table(answers.find()))
            return 0
        outcomes = []
        for outcome in answers.grade(chosen(options.names), seed=options.seed):
            outcomes.append(outcome)
            if outcome.problem:
                print(outcome.problem, flush=True)
    except DrillError as error:
        print(error)
        return error.code
    found = answers.confused(outcomes)
    for line in found:
        print(line)
    bad = len(found) + sum(bool(one.problem) for one in outcomes)
    count = len(outcomes)
    print(f"{count} known answer{'s' * (count != 1)}, {bad} problem{'s' * (bad != 1)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
