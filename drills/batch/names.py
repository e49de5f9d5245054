"""Names of submissions: what may be shown, what may be a file's name, and which shard a submission belongs to.

A folder's name is a stranger's text: it may hold control characters, turn the direction of writing, or be no text at
all. Nothing here opens a file.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata

from drills.report import words

LONGEST = 128
"""Bytes of the longest name that is taken as it is."""

ID_LONGEST = 40
_SAFE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{ID_LONGEST - 1}}}")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def shown(name: str) -> str:
    """The name, fit to be shown in any output; "unnamed" if nothing of it is."""
    return words.clean(os.fsencode(name).decode("utf-8", "replace"), LONGEST) or "unnamed"


def odd(name: str) -> str:
    """Why this name is not taken, as the end of a sentence; "" if it is."""
    raw = os.fsencode(name)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    if len(raw) > LONGEST:
        return f"its name is longer than {LONGEST} bytes"
    if any(unicodedata.category(character) in _HIDDEN for character in text):
        return "its name holds characters that cannot be seen"
    if text != text.strip() or unicodedata.combining(text[0]):
        return "its name begins or ends with a blank"
    return ""


def identity(name: str) -> str:
    """A file name that no other submission has, whatever batch or shard it is in: the name itself where that is safe.

    Otherwise what is safe of it, "~" and a hash; no safe name holds a "~".
    """
    if _SAFE.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", shown(name)).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:ID_LONGEST] or "x"
    return f"{slug}~{_digest(name).hex()[:20]}"


def shard(name: str, of: int) -> int:
    """Which shard of so many a submission belongs to, from 1. Depends on the name alone, so that it never moves."""
    return int.from_bytes(_digest(name)[:8], "big") % of + 1


def _digest(name: str) -> bytes:
    return hashlib.sha256(os.fsencode(name)).digest()
