"""`grade.py merge OUT1 OUT2 … -o OUT`: puts the shards of one batch together, and writes the outputs of the whole.

Takes only what fits: the same lessons, grader, versions, settings and seed; every shard, each once; no submission
twice. Copies results one at a time; grades nothing, and must never need a seed.
"""

from __future__ import annotations

import argparse
import datetime
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console

from drills import catalog
from drills.batch import changes, names
from drills.batch.place import Place
from drills.errors import FAILED, GRADER_FAILED, PASSED, GraderFailed, WrongUse
from drills.report import batch_screen, outputs, standing, words
from drills.study import prose

ALIKE = {
    "lessons": "the lessons differ",
    "level": "the level differs",
    "timeout": "the timeout differs",
    "isolation": "the isolation differs",
    "versions": "the versions differ",
    "code_sha256": "the grader or its tests differ",
    "seed_sha256": "the secret seed differs",
    "fingerprint": "the settings differ",
}
"""What the shards must have in common, the most telling first, and what is said where they have not."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("shards", nargs="+", type=Path, metavar="OUT", help="what batch --shard wrote, every part")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help="the folder for the whole")
    parser.add_argument("--partial", action="store_true", help="go on although shards are missing or not finished")
    outputs.add_arguments(parser.add_argument_group("outputs"))
    parser.add_argument("--exit-zero", action="store_true", help="exit code 0 although somebody failed something")


def run(options: argparse.Namespace, console: Console) -> int:
    """Merges, prints how the class stands, and returns the exit code."""
    places = [Place(path) for path in options.shards]
    trees = [read(place) for place in places]
    check_alike(places, trees)
    missing = lacking(trees)
    if missing and not options.partial:
        raise WrongUse(f"{'; '.join(missing)}. Grade what is missing, or add --partial")
    stems = trees[0]["lessons"]
    lessons = {one.stem: one.exercises for one in catalog.lessons() if one.stem in stems and not one.missing}
    writing = outputs.options_of(options, lessons or stems)
    whole = Place(options.out)
    if any(place.root.resolve() == whole.root.resolve() for place in places):
        raise WrongUse(f"{options.out} is one of the shards: name a new folder after -o")
    whole.prepare()
    if says := changes.replaced(whole.read_batch() or trees[0], trees[0]):
        raise WrongUse(f"{options.out} holds {says}: name a new folder after -o")
    taken = copy(places, trees, whole)
    not_taken = sorted({line for tree in trees for line in tree["not_taken"]})
    found = outputs.write_all(whole.root, whole.submissions, writing, not_taken)
    counts = dict(found.standings)
    whole.write_batch(
        {
            **trees[0],
            "shard": None,
            "submissions": taken,
            "not_taken": not_taken,
            "missing": missing,
            "ended": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "counts": counts,
        }
    )
    prose.say(console, f"{words.plural(taken, 'submission')} from {words.plural(len(places), 'shard')}")
    for line in missing:
        prose.say(console, f"Missing: {line}")
    out, isolation = str(options.out), trees[0]["isolation"]
    for line in batch_screen.summary_lines(found, out, console, isolation, left_out=bool(not_taken)):
        console.print(line, soft_wrap=True)
    if says := outputs.left_over(whole.root, writing):
        prose.say(console, says)
    if missing:
        return GRADER_FAILED
    return PASSED if counts.get(standing.PASSED, 0) == taken or options.exit_zero else FAILED


def read(place: Place) -> dict[str, Any]:
    """What a shard was; WrongUse if there is none."""
    tree = place.read_batch()
    if tree is None or not all(name in tree for name in (*ALIKE, "shard", "submissions", "not_taken")):
        raise WrongUse(f"{place.root} holds no batch: name what  grade.py batch --shard I/N -o OUT  wrote")
    return tree


def check_alike(places: list[Place], trees: list[dict[str, Any]]) -> None:
    """WrongUse, naming the first thing that differs, if the shards are not of one batch."""
    for name, says in ALIKE.items():
        for place, tree in zip(places, trees, strict=True):
            if tree[name] != trees[0][name]:
                raise WrongUse(f"{places[0].root} and {place.root} cannot stand in one gradebook: {says}")
    sharded = [tuple(tree["shard"]) for tree in trees if tree["shard"]]
    twice = [part for part, count in Counter(sharded).items() if count > 1]
    if twice:
        raise WrongUse(f"shard {twice[0][0]} of {twice[0][1]} is given twice")
    if len({of for _, of in sharded}) > 1:
        raise WrongUse("the shards are parts of different wholes (1/4 and 1/8 do not fit)")


def lacking(trees: list[dict[str, Any]]) -> list[str]:
    """What is missing of the whole: shards that are not there, and those that were not graded to their end."""
    sharded = {tuple(tree["shard"]) for tree in trees if tree["shard"]}
    of = next(iter(sharded))[1] if sharded else 0
    absent = [part for part in range(1, of + 1) if (part, of) not in sharded]
    found = [f"shard {part} of {of} is not there" for part in absent]
    for tree in trees:
        if not tree.get("ended"):
            part = "a batch" if not tree["shard"] else f"shard {tree['shard'][0]} of {tree['shard'][1]}"
            found.append(f"{part} was not graded to its end")
    return found


def copy(places: list[Place], trees: list[dict[str, Any]], whole: Place) -> int:
    """Copies every result; how many. WrongUse for one that is there twice, or is not of its shard's batch."""
    taken: set[str] = set()
    try:
        for place, tree in zip(places, trees, strict=True):
            for identity in place.identities():
                one = place.read(identity)
                if one is None:
                    raise WrongUse(f"{place.results}/{identity}.json cannot be read: grade that shard again")
                if one.id != identity or one.made_with.get("fingerprint") != tree["fingerprint"]:
                    raise WrongUse(f"{place.results}/{identity}.json is not of this batch: grade that shard again")
                if identity in taken:
                    raise WrongUse(f"{names.shown(one.name)} was graded in two shards ({place.root} is one of them)")
                taken.add(identity)
                whole.write(one)
        for identity in set(whole.identities()) - taken:
            whole.forget(identity)
    except OSError as error:
        raise GraderFailed(f"{whole.root} cannot be written: {error.strerror or error}") from None
    return len(taken)
