"""JSON, and proofs of who wrote it, by functions that graded code in the same process cannot replace.

A process that runs graded code shares with the parent a key that it was given before that code was loaded, and proves
each answer by it. Whoever only holds the connection, or has put another in its place, can write nothing that counts.
"""

from __future__ import annotations

import json
import json.encoder
from hashlib import blake2b
from typing import Any

KEY = 32
"""Bytes of a key, and of a proof."""


def _refuse(value: Any) -> Any:
    raise TypeError(f"no JSON for a {type(value).__name__}")


_chunks = json.encoder.c_make_encoder(
    None, _refuse, json.encoder.c_encode_basestring_ascii, None, ":", ",", False, False, True
)
_scan = json.JSONDecoder().scan_once


def text(tree: Any) -> bytes:
    """JSON of dicts, lists, tuples, strings and numbers, without blanks."""
    return "".join(_chunks(tree, 0)).encode()


def parsed(data: bytes) -> Any:
    """What `text` wrote."""
    return _scan(data.decode(), 0)[0]


def proof(key: bytes, data: bytes) -> bytes:
    """That who holds this key wrote these bytes."""
    return blake2b(data, key=key, digest_size=KEY).digest()
