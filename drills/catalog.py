"""Which lessons there are, found by the stem that a lesson's files share, and which of them a user means.

Must never import torch or a lesson: `list`, `hint` and `reset` start from here and answer at once.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from drills import stubs
from drills.errors import GraderFailed, WrongUse

ROOT = Path(__file__).resolve().parent.parent
NOT_HERE = "the solutions are not in this copy, which is made for students"
_STEM = re.compile(r"l(\d+)_[a-z0-9_]+$")


@dataclass(frozen=True)
class Entry:
    """One lesson: its stem and where its five files are. Nothing is read before it is asked for."""

    stem: str
    root: Path = ROOT

    @property
    def short(self) -> str:
        """The prefix that names the lesson: "l4"."""
        return self.stem.split("_", 1)[0]

    @property
    def page(self) -> Path:
        """The page to read."""
        return self.root / "content" / f"{self.stem}.md"

    @property
    def solution(self) -> Path:
        """The reference solution, from which the stub is made."""
        return self.root / "solutions" / f"{self.stem}.py"

    @property
    def fast(self) -> Path:
        """A faster second solution, where the lesson's own is kept easier to read; most lessons have none."""
        return self.root / "solutions" / f"{self.stem}_fast.py"

    @property
    def fast_exercises(self) -> tuple[str, ...]:
        """The exercises that the faster solution has, in the lesson's order. None without one."""
        if not self.fast.is_file():
            return ()
        tree = ast.parse(self.fast.read_text(encoding="utf-8"))
        defined = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
        return tuple(name for name in self.exercises if name in defined)

    @property
    def kept_stub(self) -> Path:
        """The stub as it stands in a copy for students, which has no solution to make it from."""
        return self.root / "drills" / "lessons" / "stubs" / f"{self.stem}.py"

    @property
    def tests(self) -> Path:
        """The graded tests."""
        return self.root / "tests" / f"test_{self.stem}.py"

    @property
    def facts(self) -> Path:
        """The lesson file: oracle, exercises, mistakes."""
        return self.root / "drills" / "lessons" / f"{self.stem}.py"

    @property
    def mine(self) -> Path:
        """The learner's file."""
        return self.root / "mine" / f"{self.stem}.py"

    @property
    def missing(self) -> tuple[str, ...]:
        """The files that a lesson needs and that are not there, relative to the root. Empty: it can be graded."""
        source = self.kept_stub if self.kept_stub.is_file() else self.solution
        needed = (self.page, source, self.tests, self.facts)
        return tuple(str(path.relative_to(self.root)) for path in needed if not path.is_file())

    @cached_property
    def stub(self) -> str:
        """The stub's text, made from the solution or, without one, kept; GraderFailed if that cannot be done."""
        kept = self.kept_stub.is_file() and not self.solution.is_file()
        source = self.kept_stub if kept else self.solution
        name = str(source.relative_to(self.root))
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise GraderFailed(f"{name} cannot be read: {error}") from None
        return text if kept else stubs.make_stub(text, name)

    @cached_property
    def exercises(self) -> tuple[str, ...]:
        """The names of the functions that a learner writes, in the order of the file."""
        return stubs.exercise_names(self.stub, f"the stub of solutions/{self.stem}.py")

    @cached_property
    def title(self) -> str:
        """The lesson's title, read from the lesson file without importing it; the stem if it is not a literal."""
        try:
            tree = ast.parse(self.facts.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return self.stem
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Lesson":
                named = [keyword.value for keyword in node.keywords if keyword.arg == "title"]
                for value in named or node.args[1:2]:
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        return value.value
        return self.stem


@dataclass(frozen=True)
class Selection:
    """A lesson and which of its exercises are meant; all of them if `exercises` is the whole tuple."""

    lesson: Entry
    exercises: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every exercise of the lesson is meant."""
        return self.exercises == self.lesson.exercises


def lessons(root: Path = ROOT) -> list[Entry]:
    """Every lesson that has a page, tests or a lesson file, by number. A solution alone may be a second version."""
    patterns = ("content/l*.md", "tests/test_l*.py", "drills/lessons/l*.py")
    stems = {path.stem.removeprefix("test_") for pattern in patterns for path in root.glob(pattern)}
    numbered = [(int(match[1]), stem) for stem in stems if (match := _STEM.match(stem))]
    return [Entry(stem, root) for _, stem in sorted(numbered)]


def has_solutions(root: Path = ROOT) -> bool:
    """Whether the solutions are here; a copy for students has none."""
    return (root / "solutions").is_dir()


def find(text: str, root: Path = ROOT) -> Selection:
    """What "l4", "l4_merge", "l4.merge_states", "merge_states" or "mine/l4_merge_states.py" means.

    WrongUse, in one line with the nearest name, if that is nothing or more than one thing.
    """
    wanted, dot, exercise = _plain(text).partition(".")
    known = lessons(root)
    lesson = _named(text, wanted, known)
    if lesson is not None:
        return Selection(lesson, (_exercise(lesson, exercise),)) if dot else Selection(lesson, lesson.exercises)
    holders = [one for one in known if not one.missing and wanted in one.exercises]
    if len(holders) == 1 and not dot:
        return Selection(holders[0], (wanted,))
    raise WrongUse(_no_lesson(text, wanted, known))


def find_lesson(text: str, root: Path = ROOT) -> Entry:
    """The lesson of what `find` would find, without reading its exercises where the lesson itself is named."""
    wanted, dot, _ = _plain(text).partition(".")
    return (None if dot else _named(text, wanted, lessons(root))) or find(text, root).lesson


def select(texts: Iterable[str], root: Path = ROOT) -> list[Selection]:
    """What several arguments mean together: each lesson once, in order; every complete lesson if there is none."""
    texts = list(texts)
    if not texts:
        return [Selection(one, one.exercises) for one in lessons(root) if not one.missing]
    chosen: dict[str, set[str]] = {}
    found = [find(text, root) for text in texts]
    for selection in found:
        if selection.lesson.missing:
            raise WrongUse(f"{selection.lesson.stem} is incomplete: {_either(selection.lesson.missing, 'and')} missing")
        chosen.setdefault(selection.lesson.stem, set()).update(selection.exercises)
    entries = {selection.lesson.stem: selection.lesson for selection in found}
    ordered = [entries[one.stem] for one in lessons(root) if one.stem in chosen]
    return [Selection(one, tuple(name for name in one.exercises if name in chosen[one.stem])) for one in ordered]


def _plain(text: str) -> str:
    """ "mine/l4_merge_states.py" → "l4_merge_states"."""
    name = text.strip().replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py").removesuffix(".md")
    return name.removeprefix("test_")


def _named(text: str, wanted: str, known: list[Entry]) -> Entry | None:
    """The lesson whose number, stem or beginning of a stem `wanted` is; WrongUse if there are several."""
    matching = [one for one in known if wanted.lower() in (one.short, one.stem)]
    matching = matching or [one for one in known if wanted and one.stem.startswith(wanted)]
    if len(matching) > 1:
        raise WrongUse(f'"{text}" could be {_either([one.short for one in matching])}')
    return matching[0] if matching else None


def _exercise(lesson: Entry, text: str) -> str:
    if text in lesson.exercises:
        return text
    matching = [name for name in lesson.exercises if text and name.startswith(text)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise WrongUse(f'"{lesson.short}.{text}" could be {_either(matching)}')
    near = difflib.get_close_matches(text, lesson.exercises, n=1, cutoff=0.5)
    hint = f"did you mean {lesson.short}.{near[0]}?" if near else f"it has {_either(lesson.exercises, 'and')}"
    raise WrongUse(f'{lesson.short} has no exercise "{text}": {hint}')


def _no_lesson(text: str, wanted: str, known: list[Entry]) -> str:
    if not known:
        return f'no lesson "{text}": there are no lessons here'
    if text and Path(text).is_dir():
        return f'"{text}" is a folder and no lesson: there are {_either([one.short for one in known], "and")}'
    names = {one.stem: one.short for one in known} | {one.short: one.short for one in known}
    names |= {one.stem.split("_", 1)[1]: one.short for one in known}
    names |= {name: f"{one.short}.{name}" for one in known if not one.missing for name in one.exercises}
    near = difflib.get_close_matches(wanted.lower(), names, n=1, cutoff=0.5)
    if near and not re.fullmatch(r"\w?\d+", wanted):  # of a number every other number is near
        return f'no lesson "{text}": did you mean {names[near[0]]}?'
    are = "are" if len(known) > 1 else "is"
    return f'no lesson "{text}": there {are} {_either([one.short for one in known], "and")}'


def _either(names: Iterable[str], word: str = "or") -> str:
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last
