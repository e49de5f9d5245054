"""Has torch loaded without the parts that grading never uses, a quarter of its time.

They are what is exported from programs, and what operations make of tensors that have no values (device "meta"). They
are loaded all together and in torch's own order as soon as anything more of torch is, by whoever it is: its modules
lean on one another in more ways than they say. Only for versions of torch that are known to do without until then.

With any version, Python's look for the module that a piece of torch is defined in is made short meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

KNOWN = ("2.13.",)
PARTS = ("export", "_meta_registrations", "_prims")
BY_NAME = ("_custom_ops", "_decomp", "_export", "_refs")
"""Further ones that only these load."""

NEEDED = "torch._prims.rng_prims"
"""Within them, the module that also gives torch's generators of random numbers their class."""


class StandIn(ModuleType):
    """In place of a module while torch is loaded; it is loaded after all if something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class Rest:
    """Asked by Python for every module that is not loaded yet: before the next one of torch's, it loads the parts."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where a module is, of those that have been loaded here meanwhile; None for the others."""
        if not name.startswith("torch.") or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        for part in PARTS:
            importlib.import_module(f"torch.{part}")
        module = sys.modules.get(name)
        if module is not None:  # Python asks it where it is from, and would load it from there once more
            module.__spec__ = ModuleSpec(name, Loaded(module), is_package=hasattr(module, "__path__"))
        return module and module.__spec__


class Loaded:
    """Gives Python a module that is there already."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, to be completed."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """It is complete."""
        module.__spec__ = self.spec


@contextlib.contextmanager
def without_parts() -> Iterator[None]:
    """Within, torch may be loaded for the first time: it waits with PARTS."""
    held = {} if "torch" in sys.modules else dict(_stand_ins())
    sys.modules.update(held)
    try:
        with frames_at_hand():
            yield
        if held and "torch" in sys.modules:
            importlib.import_module(NEEDED)
    finally:
        for name, module in held.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        if held and "torch" in sys.modules:
            _wait(sys.modules["torch"])


@contextlib.contextmanager
def frames_at_hand() -> Iterator[None]:
    """Within, `inspect` takes a frame's module from the frame. It looks where each module's file really is otherwise.

    Torch asks it a few times while it is loaded: 0.04 s.
    """
    searching = inspect.getmodule

    def getmodule(part: Any, _filename: str | None = None) -> ModuleType | None:
        known = sys.modules.get(part.f_globals.get("__name__", "")) if inspect.isframe(part) else None
        return known or searching(part, _filename)

    inspect.getmodule = getmodule
    try:
        yield
    finally:
        if inspect.getmodule is getmodule:
            inspect.getmodule = searching


def _stand_ins() -> Iterator[tuple[str, StandIn]]:
    """One for each part; none where this torch is not known."""
    found = importlib.util.find_spec("torch")
    folder = Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else Path()
    for part in PARTS if _version(folder / "version.py").startswith(KNOWN) else ():
        inside = [str(folder / part)] if (folder / part).is_dir() else None
        file = folder / part / "__init__.py" if inside else folder / f"{part}.py"
        name = f"torch.{part}"
        module = StandIn(name)
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
        vars(module).update(vars(importlib.util.module_from_spec(spec)))
        yield name, module


def _version(file: Path) -> str:
    """What torch says that it is; "" if it does not say so there."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2].strip(" '\"") for line in lines if line.startswith("__version__ =")), "")


def _wait(torch: ModuleType) -> None:
    """Have torch load its parts by their names, as it does with others that it waits with, or with its next module."""
    for part in (*PARTS, *BY_NAME):
        if isinstance(vars(torch).get(part), (StandIn, type(None))):
            vars(torch).pop(part, None)
            torch._lazy_modules.add(part)
    sys.meta_path.insert(0, Rest())
