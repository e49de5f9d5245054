"""One call under the instruments: launches and findings, from its start to its notes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drills.instruments.notes import CallOptions, Notes


class Recording:
    """What happens between the call and the return of one graded function."""

    def __init__(self, options: CallOptions, inputs: dict[str, Any], inplace: Iterable[str] = ()) -> None:
        self.options = options
        self.inputs = inputs
        self.inplace = set(inplace)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def notes(self, results: Any = None) -> Notes:
        """What was seen."""
        return Notes()
