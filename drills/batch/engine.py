"""One run of a batch, from the frozen copies to the gradebook.

Freezes the submissions, draws the seed, has workers grade what has no result that holds, writes the outputs. Can be
stopped at any moment, and goes on from there. Must never import torch, a lesson or a graded file.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from drills.batch import changes, freeze, seed, settings, tally
from drills.batch.crew import Crew
from drills.batch.place import Place
from drills.batch.progress import Progress
from drills.batch.settings import PUBLIC_SEED, Settings
from drills.errors import FAILED, GRADER_FAILED, PASSED, GraderFailed, NothingGraded, Stopped, WrongUse
from drills.report import batch_screen, outputs, standing, words
from drills.report.submission import Submission
from drills.study import prose


@dataclass(frozen=True)
class Wishes:
    """How a batch is run, as far as no verdict depends on it.

    jobs: workers. shard: (i, n), None for all. seed: the one given, None for one of its own. again: grade anew what has
    a result, and replace results of something else. shown: OUT as the user gave it.
    """

    jobs: int = 1
    shard: tuple[int, int] | None = None
    seed: seed.Seed | None = None
    again: bool = False
    exit_zero: bool = False
    plain: bool = False
    shown: str = ""


class Batch:
    """One run. folder: the submissions. place: where everything goes."""

    def __init__(self, folder: Path, place: Place, how: Settings, wishes: Wishes, console: Console) -> None:
        self.folder, self.place, self.how, self.wishes, self.console = folder, place, how, wishes, console
        self.shard = wishes.shard
        self.tree: dict[str, Any] = {}

    def run(self, writing: outputs.Options) -> int:
        """Everything; the exit code. writing: what the outputs are made with. GraderFailed if OUT cannot be written."""
        try:
            return self._run(writing)
        except OSError as error:
            raise GraderFailed(
                f"{error.filename or self.place.root} cannot be written: {error.strerror or error}. "
                "Make room and give the same command again: it goes on where it stopped"
            ) from error

    def _run(self, writing: outputs.Options) -> int:
        freeze.check(self.folder, self.place.root)
        self.place.prepare()
        self._check_same_batch()
        frozen = freeze.freeze(self.folder, self.place, self.how.files, self.shard, self.wishes.again)
        frozen_at = _now()
        if not frozen.identities and not self.shard:
            raise NothingGraded(_nothing(self.folder, self.how, self.shard, frozen.refused))
        secret = self._seed()
        made_with = self._describe(secret, frozen, frozen_at)
        count = self._grade(frozen, made_with, secret.value)
        self.tree |= {"ended": _now(), "counts": {one: count.standings[one] for one in standing.ALL}}
        self.place.write_batch(self.tree)
        found = outputs.write_all(self.place.root, self.place.submissions, writing, frozen.refused)
        if count.done > count.graded:
            prose.say(self.console, f"{count.graded} graded now, {count.done - count.graded} as before")
        left_out = bool(frozen.refused)
        for line in batch_screen.summary_lines(found, self.wishes.shown, self.console, self.how.isolation, left_out):
            self.console.print(line, soft_wrap=True)
        if says := outputs.left_over(self.place.root, writing):
            prose.say(self.console, says)
        if count.errors:
            failed = words.plural(count.errors, "submission")
            says = f"The grader failed on {failed}: give the same command again."
            prose.say(self.console, f"{says} Why is in {self.place.logs}/workers.txt")
            return GRADER_FAILED
        if not count.total and not self.wishes.exit_zero:
            raise NothingGraded(_nothing(self.folder, self.how, self.shard))
        everything = count.standings[standing.PASSED] == count.total
        return PASSED if everything or self.wishes.exit_zero else FAILED

    def _grade(self, frozen: freeze.Frozen, made_with: dict[str, str], secret: int) -> tally.Tally:
        count = tally.Tally(len(frozen.identities))
        what = " ".join(stem.split("_", 1)[0] for stem in self.how.lessons)
        shard = f" · shard {self.shard[0]} of {self.shard[1]}" if self.shard else ""
        coming = self._to_do(frozen, made_with, count)
        first = list(itertools.islice(coming, self.wishes.jobs))
        if not first:
            return count
        workers = words.plural(len(first), "worker")
        head = f"{words.plural(count.total, 'submission')} · {what}{shard} · isolation {self.how.isolation} · {workers}"
        with Progress(count, head, self.console, self.wishes.plain) as progress:
            try:
                with Crew(self.how, self.place, len(first)) as crew:
                    crew.begin(secret, made_with)
                    for done in crew.grade(itertools.chain(first, coming), progress.show):
                        count.count(done)
            except KeyboardInterrupt:
                progress.__exit__()
                prose.say(self.console, _stopped(count, self.wishes.again))
                raise Stopped from None
        return count

    def _to_do(self, frozen: freeze.Frozen, made_with: dict[str, str], count: tally.Tally) -> Iterator[str]:
        """The submissions that a worker must grade. The others are counted: their result holds, or there is no file."""
        for identity in frozen.identities:
            old = None if self.wishes.again else self.place.read(identity)
            if old is not None and self._holds(old, made_with):
                count.count(tally.summary(old), old=True)
            elif (about := self.place.taken(identity)) is not None and about["problem"]:
                about |= {"refused": tuple(about["refused"]), "made_with": made_with}
                one = Submission(identity, **about)
                self.place.write(one)
                count.count(tally.summary(one))
            else:
                yield identity

    def _holds(self, old: Submission, made_with: dict[str, str]) -> bool:
        """Whether a result is of the same files under the same circumstances. What a worker gave up is tried again."""
        taken = self.place.taken(old.id)
        if taken is None:
            return False
        before = old.files, list(old.refused), old.problem, old.made_with
        return before == (taken["files"], taken["refused"], taken["problem"], made_with)

    def _seed(self) -> seed.Seed:
        """The secret seed: the one given, the one that this batch drew before, or a new one."""
        given = self.wishes.seed
        try:
            kept = seed.load(self.place.seed) if self.place.seed.exists() else None
            if kept is not None and given in (None, kept):
                return kept
            chosen = given or seed.draw()
            self.place.seed.unlink(missing_ok=True)
            seed.save(chosen, self.place.seed)
        except OSError as error:
            raise WrongUse(f"{self.place.seed} cannot be written: {error.strerror or error}") from None
        return chosen

    def _check_same_batch(self) -> None:
        old = self.place.read_batch()
        mine = list(self.shard) if self.shard else None
        if old is not None and old.get("shard") != mine:
            raise WrongUse(f"{self.place.root} holds another shard: give each shard a folder of its own")
        if old is None or self.wishes.again or not any(self.place.identities()):
            return
        if says := changes.replaced(old, self._graded()):
            raise WrongUse(
                f"{self.place.root} holds {says}: name another folder after -o, or add --again to replace them"
            )

    def _graded(self) -> dict[str, Any]:
        return {"lessons": {stem: list(names) for stem, names in self.how.lessons.items()}, "level": self.how.level}

    def _describe(self, secret: seed.Seed, frozen: freeze.Frozen, frozen_at: str) -> dict[str, str]:
        """Writes batch.json as far as it is known now; what goes into every result."""
        mark = settings.fingerprint(self.how, secret.sha256)
        old = self.place.read_batch()
        self.tree = {
            "fingerprint": mark,
            **self._graded(),
            "versions": settings.versions(),
            "code_sha256": settings.code(self.how),
            "isolation": self.how.isolation,
            "timeout": self.how.timeout,
            "seconds_each": self.how.seconds,
            "seed_sha256": secret.sha256,
            "public_seed": PUBLIC_SEED,
            "shard": list(self.shard) if self.shard else None,
            "submissions": len(frozen.identities),
            "not_taken": frozen.refused,
            "frozen": frozen_at,
            "ended": None,
        }
        if old is not None and old.get("fingerprint") != mark:
            says = f"Not as in the last run: {changes.changed(old, self.tree)}. All are graded anew."
            prose.say(self.console, says)
        self.place.write_batch(self.tree)
        return {"fingerprint": mark, "isolation": self.how.isolation, "seed_sha256": secret.sha256}


def _stopped(count: tally.Tally, again: bool) -> str:
    """What a stop leaves behind, and which command goes on."""
    if again:
        kept = "The others keep the result that they had, if any: the same command grades all anew once more."
        return f"Stopped: {count.done} of {count.total} were graded anew. {kept}"
    return f"Stopped: {count.done} of {count.total} have a result. The same command goes on from here."


def _nothing(folder: Path, how: Settings, shard: tuple[int, int] | None, refused: Sequence[str] = ()) -> str:
    if shard:
        return f"no submission under {folder} belongs to shard {shard[0]} of {shard[1]}"
    if any((folder / name).is_file() for name in how.files):
        return f"{folder} holds lesson files itself: name the folder above it"
    there = f"; left out was {refused[0]}" if refused else ""
    return f"no submission under {folder}: each is a folder with {' or '.join(how.files[:2])} in it{there}"


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
