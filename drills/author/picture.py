"""Authors: draws the README's scorecard, or with --check says whether it is current.

    python -m drills.author.picture [--check]

The picture is of a real run with a fixed seed: l4 as somebody hands it in who used exp for exp2 in `merge_states` and
has not begun `variable_length_merge_states`. What differs between machines (isolation, seconds, numpy) is left out.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from drills import catalog, session
from drills.catalog import ROOT
from drills.errors import DrillError, GraderFailed
from drills.files import write_atomically
from drills.report.model import Grade
from drills.report.scorecard import print_scorecard
from drills.request import Request
from drills.study import surgery

PICTURE = ROOT / "content" / "figures" / "scorecard.svg"
LESSON, WRONG, UNTOUCHED = "l4", "merge_states", "variable_length_merge_states"
WIDTH, SEED = 80, 1


def main() -> int:
    """Draws or checks the picture; 0 if all is well, 1 if it is not current, 3 if it cannot be drawn."""
    try:
        svg = draw(run_sample())
    except DrillError as error:
        print(f"{PICTURE.name}: {error}", file=sys.stderr)
        return error.code
    if "--check" not in sys.argv[1:]:
        write_atomically(PICTURE, svg)
        return 0
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == svg:
        return 0
    print(f"{PICTURE.relative_to(ROOT)} is not current: python -m drills.author.picture")
    return 1


def run_sample() -> Grade:
    """Grades the sample answer in a folder of its own, as if it were mine/."""
    selection = catalog.find(LESSON)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{selection.lesson.stem}.py").write_text(sample(selection.lesson), encoding="utf-8")
        request = Request((selection,), Path(folder), device="cpu", seed=SEED, name="mine/", timeout=60.0)
        grade = session.grade(request)
    if grade.grader_error:
        raise GraderFailed(grade.grader_error)
    grade.isolation, grade.seconds = "", 0.0
    grade.versions.pop("numpy", None)
    return grade


def sample(lesson: catalog.Entry) -> str:
    """The solution with exp for exp2 in one exercise and another one's stub."""
    text = lesson.solution.read_text(encoding="utf-8")
    text = surgery.with_stub(text.encode(), UNTOUCHED, lesson.stub, lesson.stem).decode()
    lines = text.split("\n")
    for number in surgery.needed_lines(ast.parse(text), (WRONG,)):
        lines[number - 1] = lines[number - 1].replace("tl.exp2(", "tl.exp(")
    if lines == text.split("\n"):
        raise GraderFailed(f"the sample answer cannot be made: {WRONG} and what it calls use no tl.exp2")
    return "\n".join(lines)


def draw(grade: Grade) -> str:
    """The scorecard as an SVG that loads no font from elsewhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    print_scorecard(grade, console, frozenset({"hint", "show"}))
    template = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=f"python grade.py {LESSON}", code_format=template, unique_id="scorecard")
    return "\n".join(line.rstrip() for line in svg.split("\n")).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
