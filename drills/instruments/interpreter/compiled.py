"""Launches on a GPU: noted for the compile gate and for who wrote what, and then run as they are."""

from __future__ import annotations

from typing import Any

from triton.runtime import jit

from drills.instruments.interpreter import arguments
from drills.instruments.interpreter import signature as sig
from drills.instruments.settings import Settings
from drills.instruments.told import Left


class Launches:
    """The compiled side of this process. recorder: of the call that runs, or None. told: what the file has set."""

    def __init__(self) -> None:
        self.recorder: Any = None
        self.kernels: dict[Any, sig.Declared] = {}
        self.left = Left()
        self.settings = Settings()
        self.told: dict[str, str] = {}
        self.loaded: dict[str, Any] = {}

    def note(self, kernel: Any, args: tuple, grid: Any, keywords: dict[str, Any]) -> None:
        """Tell the recorder of kernel[grid](*args, **keywords), which has not run yet."""
        if kernel.fn not in self.kernels:
            self.kernels[kernel.fn] = sig.Declared(kernel.signature, kernel.params)
        declared = self.kernels[kernel.fn]
        values, options = declared.bind(args, keywords)
        with self.recorder.paused():
            launch = sig.launch(kernel.fn, declared.params, values, sig.counted(grid, values), options)
            launch.names = dict(self.told)
            self.recorder.noted(launch, list(arguments.tensors(values)))


def replace(launches: Launches) -> None:
    """Have Triton tell `launches` of every launch."""
    original = jit.JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        if launches.recorder is None:
            return original(self, *args, grid=grid, warmup=warmup, **keywords)
        if not warmup:
            launches.note(self, args, grid, keywords)
        with launches.recorder.paused():
            return original(self, *args, grid=grid, warmup=warmup, **keywords)

    jit.JITFunction.run = run
