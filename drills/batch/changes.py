"""Says what is no longer as it was when a batch ran last, from what its batch.json holds.

Reads only; must never decide whether a result holds: the fingerprint does.
"""

from __future__ import annotations

from typing import Any

SETTINGS = {"isolation": "isolation", "level": "the level", "timeout": "the time for one call"}
"""Settings that are named with both their values."""


def changed(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What differs between two batch.json, in words: "isolation was bwrap and is landlock"."""
    said = [
        f"{says} was {_shown(old.get(name))} and is {_shown(new[name])}"
        for name, says in SETTINGS.items()
        if old.get(name) != new[name]
    ]
    said += _versions(old.get("versions") or {}, new["versions"])
    if old.get("lessons") != new["lessons"]:
        said.append("the exercises that are graded are others")
    if not said and old.get("seconds_each") != new["seconds_each"]:
        said.append("the time for one submission is another")
    if old.get("code_sha256") != new["code_sha256"]:
        said.append("the grader or its tests are others")
    if old.get("seed_sha256") != new["seed_sha256"]:
        said.append("the secret seed is another")
    return "; ".join(said) or "a setting is another"


def replaced(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What a run would put in place of results of something else, in words; "" if both are of the same."""
    if all(old.get(name) == new[name] for name in ("lessons", "level")):
        return ""
    return f"results of {_graded(old, new)}, not of {_graded(new, old)}"


def _graded(tree: dict[str, Any], other: dict[str, Any]) -> str:
    """What a batch.json is of: its lessons, or its exercises where the other one is of the same lessons."""
    lessons = tree.get("lessons") or {}
    said = [stem.split("_", 1)[0] for stem in lessons]
    if tree.get("lessons") != other.get("lessons") and set(lessons) == set(other.get("lessons") or {}):
        said = [f"{short}.{name}" for short, names in zip(said, lessons.values(), strict=True) for name in names]
    level = f" at level {tree['level']}" if tree.get("level") else ""
    return f"{', '.join(said) or 'nothing'}{level or (' at all levels' if other.get('level') else '')}"


def _versions(old: dict[str, str], new: dict[str, str]) -> list[str]:
    return [
        f"{name} was {old.get(name, 'not there')} and is {version}"
        for name, version in new.items()
        if old.get(name) != version
    ]


def _shown(value: Any) -> str:
    """A setting's value; none stands for all levels."""
    return "all" if value is None else f"{value:g} s" if isinstance(value, float) else str(value)
