"""The figures that move: what stands on the page for each, and the numbers it starts from.

A figure is a still (a table made here, or the page's own image) that its script replaces. The still's numbers are
computed here in plain Python; a test holds them, and what the script computes, to the oracle in `drills/lessons`.
Must never import torch: a machine that only builds the book needs none.
"""

from __future__ import annotations

FIGURES: dict[str, str] = {}


def scripts(name: str) -> list[str]:
    """The scripts of a figure, in the order in which they must run."""
    return []


def placed(name: str, still: str) -> str:
    """What stands on the page where a figure is placed."""
    return still
