"""Authors: grades every known answer and writes what came out as a table, tests/answers/README.md.

    python -m drills.author.matrix [LESSON …]      grade and write the table
    python -m drills.author.matrix --check         grade, and say what is not as it must be or not current

Exit code 0 if every right answer passes and every wrong one fails as its header says, else 1.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from drills import catalog
from drills.author import answers
from drills.author.answers import FOLDER, Outcome
from drills.errors import DrillError

TABLE = FOLDER / "README.md"
HEAD = """# Known answers

Written by `python -m drills.author.matrix`; checked in CI to be current. `right/` holds lessons written in other ways,
which must pass at every level. `wrong/` holds one misconception a file, which must fail at the level named here, with
the diagnosis named here: the id of a known mistake, or the kind of failure where the instruments or the form check
say it all. How to add one: see CONTRIBUTING.md.
"""


def table(outcomes: Sequence[Outcome]) -> str:
    """The Markdown text: a count, then a table a lesson."""
    wrong = [one for one in outcomes if not one.answer.right]
    named = sum(bool(one.likely) for one in wrong)
    lines = [
        HEAD,
        f"{len(outcomes) - len(wrong)} right answers, {len(wrong)} wrong ones, of which {named} get a cause.\n",
    ]
    for stem in sorted({one.answer.stem for one in outcomes}):
        here = [one for one in outcomes if one.answer.stem == stem]
        lines.append(f"\n## {stem}\n")
        lines += [f"- right: `{one.answer.name}`: {one.answer.says}" for one in here if one.answer.right]
        lines += ["\n| wrong answer | exercise | what is wrong | level | diagnosis |", "|---|---|---|---|---|"]
        for one in here:
            if not one.answer.right:
                cells = (f"`{one.answer.name}`", one.answer.exercise, one.answer.says, one.level, one.diagnosis)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def problems(outcomes: Sequence[Outcome]) -> list[str]:
    """Everything that is not as it must be, a line each."""
    return [one.problem for one in outcomes if one.problem] + answers.confused(outcomes)


def is_current(outcomes: Sequence[Outcome]) -> bool:
    """Whether the committed table is the one that these outcomes make."""
    return TABLE.is_file() and TABLE.read_text(encoding="utf-8") == table(outcomes)


def main(arguments: Sequence[str]) -> int:
    """0 if all is well, 1 if not, 3 if the grader failed."""
    check, names = "--check" in arguments, [one for one in arguments if not one.startswith("-")]
    try:
        stems = [catalog.find(name).lesson.stem for name in names] or ["*"]
        outcomes = []
        for outcome in answers.grade([one for stem in stems for one in answers.find(stem)]):
            outcomes.append(outcome)
            if outcome.problem:
                print(outcome.problem, flush=True)
    except DrillError as error:
        print(error)
        return 3
    found = answers.confused(outcomes)
    for line in found:
        print(line)
    if not names:
        if check and not is_current(outcomes):
            found.append("stale")
            print("tests/answers/README.md is not current: python -m drills.author.matrix")
        elif not check:
            TABLE.write_text(table(outcomes), encoding="utf-8")
    bad = len(found) + sum(bool(one.problem) for one in outcomes)
    print(f"{len(outcomes)} known answers, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
