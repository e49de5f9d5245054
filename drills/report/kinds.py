"""What a kind of failure is called where many are counted: a short phrase that can follow "31 of 180: ".

Knows kinds only; a failure's own words are for its own report.
"""

from __future__ import annotations

PHRASES = {
    "wrong_value": "wrong values, no known cause",
    "disagree": "two ways to the same result disagree",
    "not_finite": "NaN or infinity where numbers belong, no known cause",
    "wrong_form": "results of the wrong number, shape or dtype",
    "assertion": "a property of the result does not hold",
    "exception": "an exception was raised",
    "not_interpreted": "only a GPU could run the kernel, so it was not judged",
    "timeout": "no answer in time",
    "crash": "the process crashed",
    "exit": "the code ended its own process",
    "flood": "too much was printed",
    "memory": "too much memory was used",
    "processes": "too many processes were started",
    "oversized": "the answer was too large",
    "malformed": "no answer that can be read came back",
    "broken": "the instruments failed on a call",
    "out_of_bounds": "an access outside a tensor",
    "race": "two programs wrote one element",
    "read_race": "one program read what another wrote",
    "unwritten": "elements of the result were never written",
    "input_changed": "an input was changed",
    "guard_touched": "memory next to a tensor was written",
    "shares_memory": "a result is memory of an input or of another result",
    "masked_lane": "the result depends on lanes that a load masked off",
    "order_dependent": "the result depends on the order of the programs",
    "not_triton": "results that no Triton kernel computed",
    "read_too_little": "the kernels did not read the whole input",
    "told_values": "what kernels are told changes with the inputs' values",
    "too_few_programs": "too few programs share the work",
    "traffic": "more bytes were moved than allowed",
    "compile_nothing": "no kernel was launched",
    "compile_error": "a kernel does not compile for a GPU",
    "compile_import": "the file does not load without the interpreter",
    "compile_resources": "a kernel needs more than a GPU has",
    "compile_tf32": "a float32 product would run in TF32 on a GPU",
    "missing_file": "the file is not there",
    "missing_function": "the function is not there",
    "unreadable_file": "the file cannot be read",
    "syntax_error": "a syntax error",
    "not_run": "tests were not run",
    "other": "a failure on inputs that are kept back",
}

UNEXPLAINED = frozenset({"wrong_value", "not_finite", "disagree", "assertion", "not_run", "other", "missing_function"})
"""Kinds that say that something is wrong but not what was misunderstood."""


def phrase(kind: str) -> str:
    """ "an access outside a tensor" for "out_of_bounds"; a kind that is not known here, in its own words."""
    return PHRASES.get(kind) or (PHRASES["compile_error"] if kind.startswith("compile") else kind.replace("_", " "))
