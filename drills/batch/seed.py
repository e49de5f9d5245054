"""The secret seed from which a batch's hidden inputs are drawn, and the hash by which it is published.

The seed is drawn once the submissions are frozen and never leaves OUT/secret; its salted hash stands in every result,
so that whoever is later given the file can check that no other seed was used. Must never print a seed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from drills.errors import WrongUse

SCHEMA = 1
BITS = 128


@dataclass(frozen=True)
class Seed:
    """value: the seed itself. salt: hex text that is hashed with it."""

    value: int
    salt: str

    @property
    def sha256(self) -> str:
        """The hash that is published: of the salt, a colon and the seed in decimal, as ASCII."""
        return hashlib.sha256(f"{self.salt}:{self.value}".encode("ascii")).hexdigest()


def draw() -> Seed:
    """A new one."""
    return Seed(secrets.randbits(BITS), secrets.token_hex(16))


def load(path: Path) -> Seed:
    """The seed in a file that `save` wrote; WrongUse if it is none."""
    try:
        tree = json.loads(path.read_text(encoding="ascii"))
        if tree["schema"] != SCHEMA:
            raise ValueError("of another schema")
        return Seed(int(tree["seed"]), str(tree["salt"]))
    except OSError as error:
        raise WrongUse(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise WrongUse(f"{path} is no seed file: make one with  python grade.py batch --draw-seed FILE") from None


def save(seed: Seed, path: Path) -> None:
    """Writes a new file that only its owner may read; FileExistsError if there is one. Whole or not at all."""
    text = json.dumps({"schema": SCHEMA, "seed": str(seed.value), "salt": seed.salt, "sha256": seed.sha256}) + "\n"
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)
