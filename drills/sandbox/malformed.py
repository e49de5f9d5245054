"""What is wrong with a message. Apart from the messages, so that who only judges them need not import torch."""

from __future__ import annotations

MAX_DEPTH = 16
"""Lists in lists, and the like, of what travels."""


class Malformed(Exception):
    """What came over the wire is no message."""


class Oversized(Malformed):
    """A message, or a tensor in it, is larger than its limit."""
