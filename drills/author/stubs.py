"""Authors: writes the stubs of all lessons to mine/, or with --check says which are not current.

    python -m drills.author.stubs [--check]

What was in mine/ before is kept in mine/.backup/. A stub may have at most `MOST` lines an exercise.
"""

from __future__ import annotations

import ast
import sys

from drills import catalog
from drills.errors import DrillError
from drills.study import shelf, surgery

MOST = 40
"""Lines of a stub for each of its exercises; functions that are given whole do not count."""


def problems() -> list[str]:
    """One line for each committed stub that is not what its solution makes, or that is too long."""
    found = []
    for lesson in catalog.lessons():
        if not lesson.solution.is_file():
            continue
        name, stub = f"mine/{lesson.stem}.py", lesson.stub
        if shelf.read(lesson.mine) != stub.encode("utf-8"):
            found.append(f"{name} is not the stub of solutions/{lesson.stem}.py: python -m drills.author.stubs")
        if not lesson.exercises:
            found.append(f"{name} leaves no function to write")
        lines = stub.count("\n") - _given(stub)
        if lines > MOST * len(lesson.exercises):
            found.append(f"{name} has {lines} lines, more than {MOST} an exercise")
    return found


def _given(stub: str) -> int:
    """The lines of the functions that a stub gives whole: neither to be written nor a kernel that is."""
    functions = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    whole = [node for node in functions if not isinstance(node.body[-1], (ast.Raise, ast.Pass))]
    return sum(last - first + 1 for first, last in map(surgery.span, whole))


def write() -> None:
    """Writes every stub that is not current."""
    for lesson in catalog.lessons():
        data = lesson.stub.encode("utf-8") if lesson.solution.is_file() else None
        if data is not None and shelf.read(lesson.mine) != data:
            backup = shelf.replace(lesson.mine, data)
            print(f"mine/{lesson.stem}.py" + (f" (old text: mine/{shelf.FOLDER}/{backup.name})" if backup else ""))


def main() -> int:
    """0 if all is well, 1 if a stub is not current, 3 if a marker is malformed."""
    try:
        if "--check" not in sys.argv[1:]:
            write()
        found = problems()
    except DrillError as error:
        print(error, file=sys.stderr)
        return error.code
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
