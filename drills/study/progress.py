"""What a learner has done so far, in mine/.progress.json: plain JSON that they may read, edit and delete.

Never needed for grading: a missing or broken file is an empty progress. Names are "l4.merge_state" and "l4".
"""

from __future__ import annotations

import datetime
import itertools
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
    """passed: exercise → when it first did, and the sha256 of its code that last did. hints: exercise → stages seen.
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


def broken(folder: Path = FOLDER) -> bool:
    """Whether there is a progress file that is not ours to read: damaged, or something else altogether."""
    try:
        return not isinstance(json.loads((folder / NAME).read_text(encoding="utf-8")), dict)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError):
        return True


def save(progress: Progress, folder: Path = FOLDER) -> str:
    """Writes the progress. A broken file is first set aside under another name, which is said. OSError if it can't."""
    path, told = folder / NAME, ""
    if broken(folder):
        aside = _free_name(folder)
        path.replace(aside)
        told = f"{folder.name}/{NAME} could not be read; it is kept as {aside.name} and a new one is begun."
    write_atomically(path, json.dumps({"schema": SCHEMA, **asdict(progress)}, indent=2) + "\n")
    return told


def record_passed(names: dict[str, str], folder: Path = FOLDER) -> str:
    """Notes exercises that passed: "l4.merge_state" → sha256 of its code. The time of the first pass stays.

    Never raises OSError. Like every `record_…` it returns "", or one sentence for the learner about the file.
    """
    progress = load(folder)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    before = {name: progress.passed.get(name, {}) for name in names}
    new = {name: {"when": before[name].get("when", now), "sha256": sha256} for name, sha256 in names.items()}
    if new == before:
        return ""
    progress.passed |= new
    return _try_to_save(progress, folder)


def record_hint(name: str, stage: int, folder: Path = FOLDER) -> str:
    """Notes that hint number `stage` (from 1) of an exercise was shown. Never raises OSError."""
    progress = load(folder)
    progress.hints[name] = max(stage, progress.hints.get(name, 0))
    return _try_to_save(progress, folder)


def record_quiz(lesson: str, right: int, of: int, folder: Path = FOLDER) -> str:
    """Notes the score of a quiz that was finished; the latest counts. Never raises OSError."""
    progress = load(folder)
    progress.quiz[lesson] = {"right": right, "of": of}
    return _try_to_save(progress, folder)


def _try_to_save(progress: Progress, folder: Path) -> str:
    """A folder that cannot be written must not spoil a verdict or a quiz: the trouble is only said."""
    try:
        return save(progress, folder)
    except OSError as error:
        return f"Your progress is not kept: {folder.name}/{NAME}: {error.strerror or error}"


def _free_name(folder: Path) -> Path:
    """A name for a broken file that no earlier one has."""
    return next(
        path for number in itertools.count(1) if not (path := folder / f".progress.broken-{number}.json").exists()
    )


def _items(tree: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    value = tree.get(key)
    return list(value.items()) if isinstance(value, dict) else []


def _is_score(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), int) for key in ("right", "of"))
