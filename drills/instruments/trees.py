"""Tensors inside nested lists, tuples and dicts of arguments: found by name, or replaced. The lists themselves too.

Knows the shape of arguments, nothing of what the instruments do with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


def leaves(tree: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, tensor) of every tensor in `tree`; inside a container the name gets an index: levels[0][1]."""
    if isinstance(tree, torch.Tensor):
        yield name, tree
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from leaves(item, f"{name}[{key!r}]")
    elif isinstance(tree, (list, tuple)):
        for index, item in enumerate(tree):
            yield from leaves(item, f"{name}[{index}]")


def lists(tree: Any, name: str) -> Iterator[tuple[str, list]]:
    """(name, list) of every list in `tree`, the outer one first."""
    if isinstance(tree, list):
        yield name, tree
    if isinstance(tree, (list, tuple)):
        for index, item in enumerate(tree):
            yield from lists(item, f"{name}[{index}]")


def replaced(tree: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same tree with every tensor replaced by `change` of it."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return {key: replaced(item, change) for key, item in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(replaced(item, change) for item in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(replaced(item, change) for item in tree)
    return tree
