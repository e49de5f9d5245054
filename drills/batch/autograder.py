"""`grade.py autograder OUT.zip [LESSON …]`: the file that Gradescope takes as a programming assignment's autograder.

In the zip's root stand setup.sh, which installs what grading needs when the image is built, and run_autograder, which
grades one submission and leaves /autograder/results/results.json. With them goes what grading reads of this
repository: for each lesson its page, its tests and its facts, but no solution, only the stub that is made from it.
Must never put in a file that grading does not need, nor anything of this machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from drills import catalog, grading
from drills.catalog import ROOT, Entry, Selection
from drills.errors import PASSED, NothingGraded, WrongUse
from drills.report import points_file
from drills.report.model import LEVELS
from drills.report.points import Points, shown
from drills.stubs import BEGIN, END
from drills.study import prose

POINTS = "points.toml"
RUN_TIME = ("torch", "triton", "numpy", "pytest", "rich", "safetensors", "tomli")
"""The packages of requirements.txt that grading needs."""

_WHEN = (1980, 1, 1, 0, 0, 0)
"""Of every file in the zip, so that the same repository gives the same bytes."""

SETUP = """\
#!/usr/bin/env bash
# Runs once, as root, when Gradescope builds the image: Python, its packages, and bubblewrap, which shuts a submission
# in where the container lets it.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv bubblewrap
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "Python 3.10 or newer is needed: choose an image with Ubuntu 22.04 or newer" >&2
  exit 1
}
python3 -m venv "$root/venv"
@TORCH@"$root/venv/bin/pip" install --no-cache-dir -r "$root/source/requirements.txt"
"""

RUN = """\
#!/usr/bin/env bash
# Runs once a submission. The variables are for a trial outside Gradescope.
set -uo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
source="${AUTOGRADER_SOURCE:-$root/source}"
submission="${AUTOGRADER_SUBMISSION:-$root/submission}"
results="${AUTOGRADER_RESULTS:-$root/results/results.json}"
python="${AUTOGRADER_PYTHON:-$root/venv/bin/python}"
mkdir -p "$(dirname "$results")"
rm -f "$results"
cd "$source" || exit 3
# A whole repository that was handed in, as from GitHub, has its answers in mine/.
found=""
for file in @FILES@; do
  [ ! -e "$submission/$file" ] || found=yes
done
if [ -z "$found" ] && [ -d "$submission/mine" ] && [ ! -L "$submission/mine" ]; then
  submission="$submission/mine"
fi
"$python" grade.py @LESSONS@ --target "$submission" --gradescope "$results" --plain --exit-zero@OPTIONS@
code=$?
# Without a results file Gradescope tells the instructor that the autograder failed: no student gets a 0 for that.
[ "$code" -eq 0 ] || rm -f "$results"
exit "$code"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("out", type=Path, metavar="OUT.zip", help="the file to write")
    words = "l4, l4.merge_states … (default: all)"
    parser.add_argument("names", nargs="*", default=[], metavar="LESSON[.EXERCISE]", help=words)
    parser.add_argument("--points", type=Path, metavar="FILE", help="points per exercise and level (TOML)")
    parser.add_argument("--timeout", type=grading.seconds, metavar="S", help="seconds for one call (default: 10)")
    parser.add_argument(
        "--torch-index", metavar="URL", help="take torch from this package index: that of its CPU build, 3 GB smaller"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Writes the zip."""
    if options.out.suffix != ".zip":
        raise WrongUse(f"{options.out} is no name of a zip: name the file to write first, as in autograder.zip")
    selections = catalog.select(options.names)
    if not selections:
        raise NothingGraded("there are no lessons here")
    points = points_file.load(options.points) if options.points else None
    if options.out.is_dir() or not options.out.absolute().parent.is_dir():
        raise WrongUse(f"{options.out}: name a file in a folder that is there")
    try:
        build(options.out, selections, points, options.torch_index, options.timeout)
    except OSError as error:
        raise WrongUse(f"{options.out} cannot be written: {error.strerror or error}") from None
    lessons = ", ".join(one.lesson.short for one in selections)
    prose.say(console, f"{options.out} grades {lessons}.")
    prose.say(console, "Upload it in Gradescope under Configure Autograder; choose Ubuntu 22.04 or newer.")
    return PASSED


def build(
    out: Path,
    selections: list[Selection],
    points: Points | None = None,
    torch_index: str | None = None,
    timeout: float | None = None,
) -> None:
    """Writes the zip to `out`, as a whole or not at all."""
    partial = out.with_name(f".{out.name}.tmp")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "setup.sh", setup_script(torch_index), executable=True)
            _add(archive, "run_autograder", run_script(selections, bool(points), timeout), executable=True)
            if points:
                _add(archive, POINTS, points_text(points, selections))
            for name, text in sorted(repository_files([one.lesson for one in selections])):
                _add(archive, name, text)
        os.replace(partial, out)
    finally:
        partial.unlink(missing_ok=True)


def setup_script(torch_index: str | None) -> str:
    """setup.sh. torch_index: where torch, and nothing else, comes from."""
    torch = next(line for line in requirements().splitlines() if line.startswith("torch=="))
    pip = f'"$root/venv/bin/pip" install --no-cache-dir --index-url {shlex.quote(torch_index or "")} {torch}\n'
    return SETUP.replace("@TORCH@", pip if torch_index else "")


def run_script(selections: list[Selection], points: bool, timeout: float | None) -> str:
    """run_autograder."""
    names = [
        name
        for one in selections
        for name in ([one.lesson.short] if one.whole else [f"{one.lesson.short}.{name}" for name in one.exercises])
    ]
    more = f" --points {POINTS}" if points else ""
    more += f" --timeout {timeout:g}" if timeout else ""
    files = " ".join(one.lesson.solution.name for one in selections)
    return RUN.replace("@LESSONS@", " ".join(names)).replace("@FILES@", files).replace("@OPTIONS@", more)


def points_text(points: Points, selections: list[Selection]) -> str:
    """The table as far as it is about what is graded: the lessons that are left out are unknown there."""
    lines = []
    for one in selections:
        for name in one.exercises:
            lines.append(f"[{one.lesson.short}.{name}]")
            table = points.of(one.lesson.stem, name)
            lines += [f"{level} = {shown(table.get(level, 0))}" for level in LEVELS]
    return "".join(f"{line}\n" for line in lines)


def requirements() -> str:
    """The lines of requirements.txt that grading needs."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    needed = [line for line in lines if re.split(r"[=<>; ]", line, maxsplit=1)[0] in RUN_TIME]
    return "".join(f"{line}\n" for line in needed)


def repository_files(entries: list[Entry]) -> Iterator[tuple[str, str]]:
    """Name in the zip and text of everything that grading these lessons reads."""
    yield "requirements.txt", requirements()
    for name in ("LICENSE", "grade.py", "tests/conftest.py"):
        yield name, (ROOT / name).read_text(encoding="utf-8")
    stems = {entry.stem for entry in catalog.lessons()} - {entry.stem for entry in entries}
    for path in sorted((ROOT / "drills").rglob("*.py")):
        inside = path.relative_to(ROOT)
        if not (inside.parent == Path("drills", "lessons") and path.stem in stems):
            yield inside.as_posix(), path.read_text(encoding="utf-8")
    for entry in entries:
        for path in (entry.page, entry.tests):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        yield f"solutions/{entry.stem}.py", f"{entry.stub}\n\n{BEGIN}\n{END}\n"


def _add(archive: zipfile.ZipFile, name: str, text: str, executable: bool = False) -> None:
    about = zipfile.ZipInfo(name, _WHEN)
    about.compress_type = zipfile.ZIP_DEFLATED
    about.external_attr = (0o100755 if executable else 0o100644) << 16
    archive.writestr(about, text.encode("utf-8"))
