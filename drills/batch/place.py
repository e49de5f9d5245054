"""OUT, the folder that a batch writes: where everything lies in it; reads and writes it one submission at a time.

    OUT/batch.json           what was run
    OUT/results/<id>.json    one a submission, as drills.report.submission has it
    OUT/secret/              for the instructor alone: the seed, what was graded, the verdicts on hidden inputs, logs

Everything is written whole or not at all. Must never hold all submissions in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drills.batch.taking import Taken
from drills.errors import WrongUse
from drills.files import write_atomically
from drills.report import outputs, submission
from drills.report.submission import Submission

SCHEMA = 1


class Place:
    """The folder `root`. `prepare` makes it; the other methods expect it to be there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.batch = root / "batch.json"
        self.results = root / "results"
        self.secret = root / "secret"
        self.seed = self.secret / "seed.json"
        self.frozen = self.secret / "frozen"
        self.hidden = self.secret / "hidden"
        self.logs = self.secret / "logs"
        self.desks = self.secret / "desks"
        self._lock: Any = None

    def prepare(self) -> None:
        """Makes the folder, or takes one that a batch made; WrongUse if it is something else, or in use."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if not self.secret.is_dir() and any(self.root.iterdir()):
                raise WrongUse(f"{self.root} is not empty and no batch wrote it: name a new folder after -o")
            for folder in (self.secret, self.results, self.frozen, self.hidden, self.logs):
                folder.mkdir(mode=0o700 if folder == self.secret else 0o755, exist_ok=True)
            self.secret.chmod(0o700)
            self._lock = open(self.secret / "lock", "w")  # noqa: SIM115  held until this process ends
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.clear_desks()
            self.desks.mkdir()
        except BlockingIOError:
            raise WrongUse(f"another batch is writing to {self.root}: let it finish, or name another folder") from None
        except (FileExistsError, NotADirectoryError):
            raise WrongUse(f"{self.root}: a file is in the way of that folder: name another after -o") from None
        except OSError as error:
            raise WrongUse(f"{self.root} cannot be used: {error.strerror or error}") from None

    def clear_desks(self) -> None:
        """Removes what workers had in hand, also in a batch that was killed."""
        shutil.rmtree(self.desks, ignore_errors=True)

    def release(self) -> None:
        """Lets another batch write here; the end of the process does too."""
        if self._lock is not None:
            self._lock.close()

    # What was frozen

    def freeze(self, identity: str, name: str, taken: Taken, digests: dict[str, str]) -> None:
        """Keeps a copy of what was read of a submission, for good: it is this that is graded."""
        folder = self.frozen / identity
        about = {"name": name, "files": digests, "refused": taken.refused, "problem": taken.problem}
        if self.taken(identity) == about and all(_same(folder / file, data) for file, data in taken.files.items()):
            return
        folder.mkdir(exist_ok=True)
        for file in set(os.listdir(folder)) - {*taken.files, "taken.json"}:
            os.unlink(folder / file)
        for file, data in taken.files.items():
            write_atomically(folder / file, data)
        write_atomically(folder / "taken.json", json.dumps(about))

    def taken(self, identity: str) -> dict[str, Any] | None:
        """What `freeze` noted: name, files (name → sha256), refused, problem; None if it noted nothing."""
        return _read(self.frozen / identity / "taken.json")

    # Results

    def write(self, one: Submission) -> None:
        """Keeps the result of a submission."""
        write_atomically(self.results / f"{one.id}.json", json.dumps(submission.to_tree(one), allow_nan=False) + "\n")

    def write_hidden(self, identity: str, tree: dict[str, Any]) -> None:
        """Keeps the grade on hidden inputs, as drills.report.json_file has it."""
        write_atomically(self.hidden / f"{identity}.json", json.dumps(tree, allow_nan=False) + "\n")

    def read(self, identity: str) -> Submission | None:
        """The result of a submission; None if there is none that can be read."""
        tree = _read(self.results / f"{identity}.json")
        try:
            return None if tree is None else submission.from_tree(tree)
        except ValueError:
            return None

    def identities(self) -> Iterator[str]:
        """The ids of all results, in order."""
        with contextlib.suppress(FileNotFoundError):
            yield from sorted(
                name.removesuffix(".json")
                for name in os.listdir(self.results)
                if name.endswith(".json") and not name.startswith(".")
            )

    def submissions(self) -> Iterator[Submission]:
        """All results, one after another."""
        for identity in self.identities():
            one = self.read(identity)
            if one is not None:
                yield one

    def forget(self, identity: str) -> None:
        """Drops all that is kept of a submission that is no longer there."""
        kept = (self.results / f"{identity}.json", self.hidden / f"{identity}.json")
        for path in (*kept, *outputs.own_files(self.root, identity)):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.frozen / identity, ignore_errors=True)

    # What was run

    def write_batch(self, tree: dict[str, Any]) -> None:
        """Keeps what was run."""
        write_atomically(self.batch, json.dumps({"schema": SCHEMA, **tree}, indent=2) + "\n")

    def read_batch(self) -> dict[str, Any] | None:
        """What was run; None if that cannot be read."""
        tree = _read(self.batch)
        return tree if tree is not None and tree.get("schema") == SCHEMA else None


def _same(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _read(path: Path) -> dict[str, Any] | None:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None
