"""What the compile gate has been asked for, what is known, and what to compile next. Keeps the books and does nothing.

Not for several threads at once: whoever shares a plan holds a lock around every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from drills.instruments import gate_python
from drills.instruments.gate_alike import View, enough, view
from drills.instruments.gate_compile import SHARED
from drills.instruments.gate_depth import Depth
from drills.instruments.gate_lane import UNSTOPPED
from drills.instruments.gate_plain import is_plain, multiplies_plainly
from drills.instruments.gate_report import CompileReport, refused, report
from drills.instruments.gate_spec import Spec
from drills.instruments.gate_text import ATOMICS, PRODUCTS, Text

ARCHS = (90, 80)
FRONT_ARCH = 80
"""The target whose front end every kernel passes; the other's takes all that this one's takes."""

ROOM = SHARED[FRONT_ARCH] // 24
"""Elements of 8 bytes of which three may be in the older target's shared memory at a time, in every stage of a loop."""

MOST_STRIKES = 2
"""Compilations of one kernel that may die or run out of time before the rest of it is given up."""


@dataclass(eq=False)
class Entry:
    """One distinct specialisation of one file. done: (arch, depth) → report. asked: what has been given out."""

    path: str
    data: bytes
    sha256: str
    text: Text
    spec: Spec
    done: dict[tuple[int, Depth], CompileReport] = field(default_factory=dict)
    asked: set[tuple[int, Depth]] = field(default_factory=set)

    def has(self, arch: int, depth: Depth) -> bool:
        """Whether this depth is known: reached, or refused on the way to it."""
        return any(of == arch and (got >= depth or not made.ok) for (of, got), made in self.done.items())

    @cached_property
    def plain(self) -> bool:
        """Whether machine code for one target tells what the other's would."""
        return is_plain(self.text, self.spec)

    @cached_property
    def multiplies(self) -> bool:
        """Whether machine code of its kernel's largest, for the newer target, is enough where the rest is lowered."""
        return self.text.says(self.spec.line, PRODUCTS) and multiplies_plainly(self.text, self.spec)

    @property
    def kernel(self) -> tuple[str, str, int]:
        """Its kernel, with whatever flags."""
        return self.sha256, self.spec.kernel, self.spec.line

    @cached_property
    def kin(self) -> tuple[str, str, int, int]:
        """Its kernel with its flags, warps and stages: what differs in sizes and types only."""
        flags = self.spec.family(products=False, atomics=False)
        return self.sha256, flags, self.spec.num_warps, self.spec.num_stages

    @cached_property
    def view(self) -> View:
        """What Triton's front end sees of it."""
        return view(self.text, self.spec)

    @cached_property
    def small(self) -> bool:
        """Whether no tensor of it is so large that shared memory might not do; those with products are never small."""
        multiplies = self.text.says(self.spec.line, PRODUCTS)
        return not multiplies and self.view.most * max(1, self.spec.num_stages) <= ROOM

    def stands_for(self, other: Entry) -> bool:
        """Whether what is true of the largest is true of it, with respect to the other, which is of its family."""
        if self.small:
            return self.spec.rank >= other.spec.rank
        if not (self.spec.absent <= other.spec.absent and self.view.covers(other.view)):
            return False
        return self.view.extents != other.view.extents or self.spec.rank >= other.spec.rank

    def told_by(self, arch: int, first: bool) -> bool:
        """Whether the newer target makes this one needless: nothing differs, and what is known to fit there fits here.

        first: of its kernel's largest. Products lie elsewhere on the older target: it may take a quarter of the shared
        memory there, the others half of it.
        """
        if arch == ARCHS[0] or not (self.plain or self.multiplies):
            return False
        room = SHARED[arch] // (1 if self.plain else 4 if first else 2)
        made = self.lowered(ARCHS[0])
        return made is None or not made.ok or made.shared <= room

    def lowered(self, arch: int) -> CompileReport | None:
        """What tells its shared memory, if that is known."""
        return self.done.get((arch, Depth.FULL)) or self.done.get((arch, Depth.LOWERED))

    def fits_beside(self, halves: list[Entry], arch: int) -> bool:
        """Whether float32 values take so little shared memory that it need not be looked at.

        halves: the largest of its kin with 16-bit values, which take half as much; one that is as large as this, and
        does the same, may have a quarter.
        """
        alike = [one for one in halves if one.view.covers(self.view) and one.spec.size >= self.spec.size]
        made = [one.lowered(arch) for one in alike]
        fits = (one is None or (one.ok and one.shared <= SHARED[arch] // 4) for one in made)
        return not self.spec.reads_half and bool(alike) and all(fits)

    @cached_property
    def unfit(self) -> Any:
        """The answer to a kernel whose Python does what it may not, None for any other."""
        return gate_python.unfit(self.text, self.spec)

    @cached_property
    def foreign(self) -> Any:
        """The same for one that compiles."""
        return gate_python.foreign(self.text, self.spec)

    def settle(self, arch: int, depth: Depth, answer: Any) -> CompileReport:
        """Take in an answer."""
        if isinstance(answer, dict) and answer.get("ok") is True:
            answer = self.unfit or self.foreign or answer
        self.done[arch, depth] = report(answer, self.spec, f"sm_{arch}", depth, self.text)
        return self.done[arch, depth]

    def best_known(self, arch: int, seconds: float) -> CompileReport:
        """The deepest report, or one that says that there was none after so many seconds."""
        for depth in reversed(Depth):
            if (arch, depth) in self.done:
                return self.done[arch, depth]
        return refused(self.spec, f"sm_{arch}", "compile_unfinished", f"not compiled after {seconds:.0f} seconds")


@dataclass(frozen=True)
class Compilation:
    """One thing for a lane to ask."""

    entry: Entry
    arch: int
    depth: Depth
    seconds: float

    def question(self, number: int) -> dict[str, Any]:
        """The JSON object that `gate_worker` expects."""
        entry = self.entry
        asked = {"id": number, "file": entry.path, "sha256": entry.sha256, "arch": self.arch, "depth": self.depth}
        # The text goes along: the process may not be able to open the file. Latin-1 keeps every byte.
        return {**asked, "text": entry.data.decode("latin-1"), "seconds": self.seconds, "spec": entry.spec.to_json()}


class Plan:
    """seconds: limit of one compilation. thorough: everything is compiled to the end.

    figures: machine code is made also where it tells no more than registers, spills and widths.
    """

    def __init__(self, seconds: float, thorough: bool, figures: bool = True) -> None:
        self.seconds = seconds
        self.thorough = thorough
        self.figures = figures
        self.entries: dict[tuple[str, str], Entry] = {}
        self.largest: dict[tuple[str, str, int], list[Entry]] = {}
        self.halves: dict[tuple[str, str, int, int], list[Entry]] = {}
        self.exercises: dict[str, dict[tuple[str, str], Entry]] = {}
        self.fronts: dict[str, tuple[tuple, list[Entry]]] = {}
        self.strikes: Counter = Counter()
        self.unloadable: dict[str, Any] = {}

    def count(self, exercise: str) -> int:
        """How many distinct specialisations the exercise has."""
        return len(self.exercises.get(exercise, {}))

    def add(self, exercise: str, entry: Entry) -> Entry | None:
        """Note a specialisation; gives it back if it is a new one. What an exercise had of an older file is dropped."""
        mine = self.exercises.setdefault(exercise, {})
        key = (entry.sha256, entry.spec.text)
        if key in mine:
            return None
        for old in [one for one, had in mine.items() if had.path == entry.path and had.sha256 != entry.sha256]:
            del mine[old]
        fresh = key not in self.entries
        mine[key] = self.entries.setdefault(key, entry)
        one = mine[key]
        best = self.largest.setdefault((entry.sha256, *self.family(one)), [])
        if not any(other.stands_for(one) for other in best):
            best[:] = [other for other in best if not one.stands_for(other)] + [one]
        if one.spec.reads_half and (one.plain or one.multiplies):
            self.halves.setdefault(one.kin, []).append(one)
        return mine[key] if fresh else None

    def family(self, entry: Entry) -> tuple[str, int]:
        """What specialisations share of which only the largest go past the front end."""
        if self.thorough:
            return entry.spec.text, 0
        says, line = entry.text.says, entry.spec.line
        atomics = says(line, ATOMICS)
        targets = entry.text.targets(line) if atomics else None
        alike = entry.spec.family(products=says(line, PRODUCTS), atomics=atomics, targets=targets)
        return alike, -1 if entry.small else entry.view.mode

    def wanted(self, only: str | None = None) -> Iterator[tuple[Entry, int, Depth]]:
        """(entry, arch, depth) of all that should become known: front ends first, then what goes furthest.

        The longest come first, products among them, so that two processes end at about the same time. only: of this
        exercise, and perhaps of others.
        """
        first = self._first()
        best = {
            (id(entry), arch): self._depth(entry, arch, id(entry) in first)
            for entry in self._largest()
            for arch in ARCHS
            if self.thorough or not entry.told_by(arch, id(entry) in first)
        }
        seen = set()
        for exercise in self.exercises if only is None else self.exercises.keys() & {only}:
            for entry in self._seen(exercise, best):
                if id(entry) not in seen:
                    seen.add(id(entry))
                    yield entry, FRONT_ARCH, Depth.FRONT
        further = [(entry, arch) for entry in self.entries.values() for arch in ARCHS if (id(entry), arch) in best]
        for entry, arch in sorted(further, key=lambda one: (-best[id(one[0]), one[1]], not one[0].multiplies)):
            yield entry, arch, best[id(entry), arch]

    def _depth(self, entry: Entry, arch: int, first: bool) -> Depth:
        """How far a family's largest goes. first: it is the first of its kernel."""
        if self.thorough or not (entry.plain or entry.multiplies):
            return Depth.FULL
        if self.figures and arch == ARCHS[0] and first:
            return Depth.FULL
        return Depth.TILES if entry.fits_beside(self.halves.get(entry.kin, []), arch) else Depth.LOWERED

    def _largest(self) -> Iterator[Entry]:
        """The largest of all families."""
        return (one for family in self.largest.values() for one in family)

    def _first(self) -> set[int]:
        """The ids of those that come first among the largest of their kernels' families."""
        first: dict[tuple[str, str, int], Entry] = {}
        for entry in self._largest():
            first[entry.kernel] = max(first.get(entry.kernel, entry), entry, key=lambda other: other.spec.rank)
        return set(map(id, first.values()))

    def _seen(self, exercise: str, best: dict[tuple[int, int], Depth]) -> list[Entry]:
        """The exercise's specialisations of which the front end is run alone; best: those that go further."""
        mine = list(self.exercises[exercise].values())
        whole = [one for one in mine if (id(one), FRONT_ARCH) in best]
        if self.thorough:
            done = {(one.sha256, one.spec.front): one for one in reversed(mine)}
            return [one for key, one in done.items() if key not in {(two.sha256, two.spec.front) for two in whole}]
        front = FRONT_ARCH, Depth.FRONT
        same = [one for one in mine if one.plain or one.multiplies]
        newer = [one for one in same if (id(one), ARCHS[0]) in best and one not in whole]
        asked = [one for one in mine if front in one.asked or front in one.done]
        settled = (len(mine), *map(id, (*whole, *newer)))
        before, chosen = self.fronts.get(exercise, ((), []))
        if before[:1] == (settled,) and all(one in asked for one in chosen):
            return chosen  # what others have been taken meanwhile can only make it more than enough
        others = self._passed(mine)
        state = settled, *map(id, (*asked, *others))
        if before != state:
            self.fronts[exercise] = state, _enough(mine, whole, newer, asked, others)
        return self.fronts[exercise][1]

    def _passed(self, mine: list[Entry]) -> list[Entry]:
        """Specialisations of other exercises that the front end has taken, of files that are among these."""
        files = {one.sha256 for one in mine}
        others = [one for one in self.entries.values() if one.sha256 in files and one not in mine]
        return [one for one in others if any(made.ok for (arch, _), made in one.done.items() if arch == FRONT_ARCH)]

    def open(self, only: str | None = None, going_on: str | None = None) -> list[tuple[Entry, int, Depth]]:
        """What is wanted and neither known nor given out. only: of this exercise.

        going_on: the exercise that launches more, perhaps larger ones: nothing of it goes past the front end yet, and
        what others launched of its kernels does so last.
        """
        return list(self._open(only, going_on))

    def _open(self, only: str | None, going_on: str | None) -> Iterator[tuple[Entry, int, Depth]]:
        """The same, one by one: most often the first is all that is asked for."""
        mine = self._of(only) if only is not None else set(map(id, self.entries.values()))
        unsettled = self._of(going_on) if going_on is not None else ()
        growing = {one.kernel for one in self.exercises.get(going_on, {}).values()}
        last = []
        for entry, arch, depth in self.wanted(only):
            further = depth > Depth.FRONT
            if id(entry) not in mine or (further and id(entry) in unsettled):
                continue
            if entry.has(arch, depth) or (arch, depth) in entry.asked:
                continue
            if further and entry.kernel in growing:
                last.append((entry, arch, depth))
            else:
                yield entry, arch, depth
        yield from last

    def next(self, only: str | None = None, going_on: str | None = None) -> Compilation | None:
        """The first of what is open, None if there is nothing for now. Settles what needs no asking."""
        for entry, arch, depth in self._open(only, going_on):
            entry.asked.add((arch, depth))
            known = self._foregone(entry)
            if known is None:
                return Compilation(entry, arch, depth, self.seconds)
            entry.settle(arch, depth, known)
        return None

    def settle(self, job: Compilation, answer: Any) -> CompileReport:
        """Take in the answer to what was given out."""
        entry = job.entry
        made = entry.settle(job.arch, job.depth, answer)
        if made.kind == "compile_import" or answer is UNSTOPPED:
            self.unloadable[entry.sha256] = answer
        if made.kind in ("compile_timeout", "compile_died"):
            self.strikes[entry.sha256, entry.spec.kernel] += 1
        return made

    def give_up(self, why: str) -> None:
        """Nothing more can be compiled: say so of all that is open."""
        for entry, arch, depth in self.open():
            entry.done[arch, depth] = refused(entry.spec, f"sm_{arch}", "compile_died", why)

    def is_complete(self, exercise: str) -> bool:
        """Whether all that the exercise launched is known as deep as it should be."""
        mine = self._of(exercise)
        return all(entry.has(arch, depth) for entry, arch, depth in self.wanted(exercise) if id(entry) in mine)

    def reports(self, exercise: str, seconds: float) -> list[CompileReport]:
        """What is wanted of the exercise's specialisations. seconds: how long was waited, for what is not known."""
        wanted = {(id(entry), arch) for entry, arch, _ in self.wanted(exercise)}
        mine = self.exercises.get(exercise, {}).values()
        return [entry.best_known(arch, seconds) for entry in mine for arch in ARCHS if (id(entry), arch) in wanted]

    def _of(self, exercise: str) -> set[int]:
        """The ids of the exercise's specialisations."""
        return {id(entry) for entry in self.exercises.get(exercise, {}).values()}

    def _foregone(self, entry: Entry) -> Any:
        """The answer that any question about this entry would get; None if it must be asked."""
        if entry.unfit is not None:
            return entry.unfit
        if entry.sha256 in self.unloadable:
            return self.unloadable[entry.sha256]
        if self.strikes[entry.sha256, entry.spec.kernel] >= MOST_STRIKES:
            error = "not tried: the compiler did not finish with this kernel before"
            return {"ok": False, "kind": "compile_timeout", "error": error}
        return None


def _enough(
    mine: list[Entry], whole: list[Entry], newer: list[Entry], asked: list[Entry], others: list[Entry]
) -> list[Entry]:
    """Of which of an exercise's specialisations the front end is run alone, those asked for among them.

    whole: those of which machine code is made for that target. newer: those of which it is made for the other, which
    tells as much; but each kernel is seen by this target too. others: of other exercises, taken by this target.
    """
    places = {id(one): place for place, one in enumerate((*mine, *others))}
    seen = {places[id(one)] for one in (*whole, *newer, *asked, *others)}
    views = [one.view for one in (*mine, *others)]
    chosen = [*asked, *(mine[place] for place in enough(views, seen))]
    for one in newer:
        if not any(one.view.group == other.view.group for other in (*whole, *chosen, *others)):
            chosen.append(one)
    return chosen
