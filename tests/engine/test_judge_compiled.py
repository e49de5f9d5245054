"""The compile gate's report as a failure: what is expected fits what was found."""

import pytest

from drills.instruments.gate import CompileReport
from drills.judge.compiled import compiled


@pytest.mark.parametrize(
    "kind, words", [("compile_tf32", "float32's precision"), ("compile_error", "k compiles for sm_90")]
)
def test_what_compiles_and_rounds_is_not_told_to_compile(kind, words):
    failure = compiled([CompileReport(kernel="k", target="sm_90", ok=False, kind=kind, error="x")])
    assert failure.kind == kind and words in failure.expected
