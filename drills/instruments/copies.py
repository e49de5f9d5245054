"""What torch copied around the kernels: data that was moved too, though no kernel moved it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from drills.instruments.geometry import itemsize, numel
from drills.instruments.notes import Launch, Traffic


@dataclass
class Copies:
    """Copies of values, in order: (operation, line, tensors read, tensor written)."""

    made: list[tuple[str, int | None, list[torch.Tensor], torch.Tensor]] = field(default_factory=list)

    def add(self, operation: str, line: int | None, sources: list[torch.Tensor], target: torch.Tensor) -> None:
        """Note one; the tensors are kept, so that their memory keeps its name."""
        if numel(target):
            self.made.append((operation, line, sources, target))

    def launches(self, called: Callable[[torch.Tensor], str]) -> list[Launch]:
        """Each copy as a launch that only moves bytes. called: a tensor's name."""
        return [self._launch(*one, called) for one in self.made]

    @staticmethod
    def _launch(operation, line, sources, target, called) -> Launch:
        made = Launch(operation, line or 0, (), {}, {}, [])
        for at, source in enumerate(sources):
            size = numel(source) * itemsize(source)
            made.traffic[f"from {at}"] = Traffic(loaded=size, distinct_loaded=size)
            made.tensors[f"from {at}"] = called(source)
        size = numel(target) * itemsize(target)
        made.traffic["to"] = Traffic(stored=size, distinct_stored=size)
        name = called(target)
        made.tensors["to"] = f"a copy of {name}" if name in made.tensors.values() else name
        return made
