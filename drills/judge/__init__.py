"""Decides: form, values, traffic, and the likely cause. Runs in the trusted parent, never runs graded code.

Order of use, for one call:
    form(…)             how many results, which kind, shape, dtype     → Failure | None
    unpack(…)           what was returned, or written in place         → one tensor an output
    values(…)           against the float64 oracle                     → Failure | None
    diagnose(…), named(…)   the one known mistake that explains it     → the Failure with its cause
    traffic(…), multiple(…), read_too_little(…), too_few_programs(…)    from the recorder's notes
    finding(…), raised(…), death(…)                what an instrument saw, an exception, a worker's end → Failure
"""

from drills.judge.compare import compare, matches
from drills.judge.diagnosis import diagnose
from drills.judge.expected import right_results
from drills.judge.failures import GradedFailure, death, finding, level_of, one_line, raised
from drills.judge.form import form, unpack
from drills.judge.pattern import shape_of_error
from drills.judge.programs import too_few_programs
from drills.judge.tolerance import tolerance
from drills.judge.traffic import moved, multiple, read_too_little, traffic
from drills.judge.verdict import agree, exact, named, pointed, values
from drills.judge.words import called

__all__ = [
    "GradedFailure",
    "agree",
    "called",
    "compare",
    "death",
    "diagnose",
    "exact",
    "finding",
    "form",
    "level_of",
    "matches",
    "moved",
    "multiple",
    "named",
    "one_line",
    "pointed",
    "raised",
    "read_too_little",
    "right_results",
    "shape_of_error",
    "tolerance",
    "too_few_programs",
    "traffic",
    "unpack",
    "values",
]
