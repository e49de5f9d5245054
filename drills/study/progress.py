"""What a learner has done so far, in mine/.progress.json: plain JSON that they may read, edit and delete.

Never needed for grading: a missing or broken file is an empty progress. Names are "l4.merge_state" and "l4".
"""

from __future__ import annotations

import contextlib
import datetime
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from drills.catalog import ROOT
from drills.files import write_atomically

FOLDER = ROOT / "mine"
NAME = ".progress.json"
SCHEMA = 1


@dataclass
class Progress:
    """passed: exercise → when, and the sha256 of the file that passed. hints: exercise → stages seen.
    quiz: lesson → {"right": questions answered right, "of": questions}.
    """

    passed: dict[str, dict[str, str]] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    quiz: dict[str, dict[str, int]] = field(default_factory=dict)


def load(folder: Path = FOLDER) -> Progress:
    """The progress kept in `folder`; an empty one if there is none. What has another form than ours is left out."""
    try:
        tree = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return Progress()
    if not isinstance(tree, dict):
        return Progress()
    return Progress(
        passed={name: value for name, value in _items(tree, "passed") if isinstance(value, dict)},
        hints={name: value for name, value in _items(tree, "hints") if isinstance(value, int)},
        quiz={name: value for name, value in _items(tree, "quiz") if _is_score(value)},
    )


def save(progress: Progress, folder: Path = FOLDER) -> None:
    """Writes the progress; a file that is not ours is first renamed to `.progress.broken.json`. OSError if it can't."""
    path = folder / NAME
    try:
        readable = isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except FileNotFoundError:
        readable = True
    except (ValueError, RecursionError):
        readable = False
    if not readable:
        path.replace(folder / ".progress.broken.json")
    write_atomically(path, json.dumps({"schema": SCHEMA, **asdict(progress)}, indent=2) + "\n")


def record_passed(names: dict[str, str], folder: Path = FOLDER) -> None:
    """Notes exercises that passed: "l4.merge_state" → sha256 of the file. The first time stays. Never raises OSError."""
    if not names:
        return
    progress = load(folder)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    new = {name: {"when": now, "sha256": sha256} for name, sha256 in names.items() if name not in progress.passed}
    if new:
        progress.passed |= new
        _try_to_save(progress, folder)


def record_hint(name: str, stage: int, folder: Path = FOLDER) -> None:
    """Notes that hint number `stage` (from 1) of an exercise was shown. Never raises OSError."""
    progress = load(folder)
    progress.hints[name] = max(stage, progress.hints.get(name, 0))
    _try_to_save(progress, folder)


def record_quiz(lesson: str, right: int, of: int, folder: Path = FOLDER) -> None:
    """Notes the score of a quiz that was finished; the latest counts. Never raises OSError."""
    progress = load(folder)
    progress.quiz[lesson] = {"right": right, "of": of}
    _try_to_save(progress, folder)


def _try_to_save(progress: Progress, folder: Path) -> None:
    """A folder that cannot be written must not spoil a verdict or a quiz."""
    with contextlib.suppress(OSError):
        save(progress, folder)


def _items(tree: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    value = tree.get(key)
    return list(value.items()) if isinstance(value, dict) else []


def _is_score(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), int) for key in ("right", "of"))
