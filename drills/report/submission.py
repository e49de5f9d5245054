"""One submission of a batch, as it stands on disk: what was graded, what was not taken, and the grade.

Plain data between the batch engine, which writes one such file a submission, and the outputs, which read them one at
a time. Must never hold a hidden input: `grade` is the public view.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from drills.report import json_file
from drills.report.model import Grade

SCHEMA = 1
GRADER = "the grader itself failed on this submission"
"""The problem of a submission that is not its own."""

RENAME = ": give it another"
"""How the problem of a submission whose name is not taken ends."""


@dataclass(frozen=True)
class Submission:
    """id: a safe file name made from the folder's name, unique in the batch. name: the folder's name, cleaned.

    files: lesson file name ("l4_merge_states.py") → sha256 of what was graded. refused: what was not taken and why, a
    line each. problem: why it could not be graded at all, else "". grade: as graded; None with a problem.
    made_with: what a second run must have in common with this one: "isolation", "seed_sha256", "fingerprint" (of the
    tests, the grader, the versions and the settings), the same for all submissions of a batch.
    """

    id: str
    name: str
    files: dict[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    problem: str = ""
    grade: Grade | None = None
    made_with: dict[str, str] = field(default_factory=dict)


def to_tree(submission: Submission) -> dict[str, Any]:
    """A tree of JSON's own types; `from_tree` gives the same submission back."""
    return {
        "schema": SCHEMA,
        "id": submission.id,
        "name": submission.name,
        "files": dict(submission.files),
        "refused": list(submission.refused),
        "problem": submission.problem,
        "grade": None if submission.grade is None else json_file.as_tree(submission.grade),
        "made_with": dict(submission.made_with),
    }


def from_tree(tree: dict[str, Any]) -> Submission:
    """The submission that `to_tree` wrote; ValueError if it is none, or of a schema that is not known here."""
    if not isinstance(tree, dict) or tree.get("schema") != SCHEMA:
        raise ValueError(f"no result of schema {SCHEMA}")
    try:
        return Submission(
            id=str(tree["id"]),
            name=str(tree["name"]),
            files={str(name): str(value) for name, value in tree["files"].items()},
            refused=tuple(map(str, tree["refused"])),
            problem=str(tree["problem"]),
            grade=None if tree["grade"] is None else json_file.from_tree(tree["grade"]),
            made_with={str(name): str(value) for name, value in tree["made_with"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a result with a part missing: {error}") from None
