"""The misconceptions about the running max and the range of exp in a merge of (m, l, o), with what is said of them.

The formulas stand in triple_loop_formulas.py. Never used by graded code.
"""

from __future__ import annotations

from drills.lessons import triple_draws as draws
from drills.lessons import triple_loop_formulas as formulas
from drills.lessons.base import Mistake
from drills.lessons.oracle import merge_mlo
from drills.lessons.running import RESCALED_SAYS
from drills.lessons.strides import ignoring, with_strides
from drills.lessons.triple_formulas import Rule, on_all, on_pair, only

STEPS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Parts a step."""

RANGE, EMPTY, WHOLE = "the-running-max", "two-empty-parts", "every-part-and-nothing-else"
STRIDES = "was read as if it were contiguous: use its strides, or copy it with contiguous() first."
UNSHIFTED = "The max was not subtracted: exp(m) overflows float32 from 88.8 on, is 0 below -104. Take exp(m_n - max m)."
STAND_IN = "A finite number stands in for -inf, and legal scores lie below it. Start from -inf and guard for it."

STAND_INS = (-1e4, -2e4, -3e4, -5e4, -65504.0)
"""Numbers taken for minus infinity, above the scores of the cases."""

CARRIED = {
    "o_not_rescaled": ("keep", "none"),
    "l_not_rescaled": ("none", "keep"),
    "nothing_rescaled": ("none", "none"),
    "factor_upside_down": ("inverted", "inverted"),
}
"""How l and o are carried over."""


def _pair(name: str, rules: tuple[Rule, ...], says: str, anchor: str, cases=None) -> Mistake:
    """A mistake of merge_pair: the usual rule first."""
    of_two = cases and (lambda rng: draws.as_pair(*cases(rng, 2)))
    first, *others = (on_pair(rule) for rule in rules)
    return Mistake(f"pair_{name}", "merge_pair", first, says, anchor, of_two, variants=tuple(others))


def _all(name: str, rules: tuple[Rule, ...], says: str, anchor: str, cases=None) -> Mistake:
    """A mistake of merge_mlo: the usual rule first."""
    of_five = cases and (lambda rng: cases(rng, 5))  # no power of two: lanes past the last part show as well
    first, *others = (on_all(rule) for rule in rules)
    return Mistake(f"mlo_{name}", "merge_mlo", first, says, anchor, of_five, variants=tuple(others))


def _not_carried(name: str) -> Mistake:
    """The old sums of a merge with a running max, carried over as they should not be."""
    ways = [formulas.in_steps_of(step, *CARRIED[name]) for step in STEPS]
    if name == "factor_upside_down":
        ways += [formulas.in_steps_of(step, *CARRIED[name], first_step=False) for step in STEPS]
    return _all(name, tuple(ways), RESCALED_SAYS[name] + "exp(m_old - m_new).", RANGE, draws.many_parts)


def _stand_ins(*forms) -> tuple[Rule, ...]:
    return tuple(form(start, guarded) for start in STAND_INS for form in forms for guarded in (True, False))


BOTH_GUARDS = (True, False)
EPSILONS = tuple(10.0**-n for n in (6, 3, 4, 5, 7, 8, 9, 10, 12, 15, 20, 30))

LOOPS = (
    _pair(
        "no_shift",
        tuple(formulas.unshifted(l_too, guarded) for l_too in (False, True) for guarded in BOTH_GUARDS),
        UNSHIFTED,
        RANGE,
        draws.far_apart,
    ),
    _all(
        "no_shift",
        tuple(formulas.unshifted(True, guarded) for guarded in BOTH_GUARDS),
        UNSHIFTED,
        RANGE,
        draws.far_apart,
    ),
    _pair(
        "shifted_by_one",
        tuple(formulas.by_one_part(at, guarded) for at in (0, 1) for guarded in BOTH_GUARDS),
        "One part's m was subtracted, not the larger of the two: exp overflows where the other's is far above it.",
        RANGE,
        draws.one_far_above,
    ),
    _pair("finite_stand_in", _stand_ins(formulas.low_is_empty, formulas.max_from), STAND_IN, RANGE, draws.far_below),
    _all("finite_stand_in", _stand_ins(formulas.low_is_empty, formulas.max_from), STAND_IN, RANGE, draws.far_below),
    _all(
        "start_zero",
        tuple(formulas.max_from(0.0, guarded) for guarded in BOTH_GUARDS),
        "The running max starts at 0, or lanes past N give it a 0: parts far below lose all weight. Both are -inf.",
        RANGE,
        draws.far_apart,
    ),
    _all(
        "zero_kept",
        tuple(formulas.zero_kept(step, guarded) for step in STEPS for guarded in BOTH_GUARDS),
        "The 0 that is subtracted while the max is -inf was kept as the max, which lower maxima never replace. m stays "
        "-inf.",
        RANGE,
        draws.low_after_empty,
    ),
    _pair(
        "epsilon",
        tuple(formulas.with_epsilon(epsilon) for epsilon in EPSILONS),
        "A small number was added to l in place of a guard: the l of two empty parts is 0. Guard with where.",
        EMPTY,
        draws.empty_head,
    ),
    _pair(
        "m_of_one",
        (formulas.m_of(0), formulas.m_of(1)),
        "The merged m is that of one part. It is the larger of the two, whichever comes first.",
        RANGE,
    ),
    *(_not_carried(name) for name in CARRIED),
    _all(
        "padding_counts",
        tuple(formulas.padded_to(block) for block in (None, *STEPS[1:])),
        "Lanes past N count as parts: loaded with m = 0 and l = 1 they have a weight. Load m as -inf and l as 0.",
        WHOLE,
        draws.parts_below_zero,
    ),
    _all("first_dropped", (only(slice(1, None)),), "The first part is missing from the result.", WHOLE),
    _all(
        "only_first_block",
        tuple(only(slice(None, block)) for block in (64, *STEPS, 256)),
        "Only the first block of parts was merged. Loop over all of them, one block a step.",
        WHOLE,
        draws.very_many_parts,
    ),
    Mistake(
        "pair_strides_ignored", "merge_pair", says=f"m, l or o {STRIDES}", anchor=WHOLE,
        cases=with_strides(draws.draw_pair),
        **ignoring(on_pair(merge_mlo), (0, 3), (1, 4), (2, 5), (0,), (1,), (2,), (3,), (4,), (5,)),
    ),
    Mistake(
        "mlo_strides_ignored", "merge_mlo", says=f"m, l or o {STRIDES}", anchor=WHOLE,
        cases=with_strides(draws.draw_parts), **ignoring(on_all(merge_mlo), (0,), (1,), (2,)),
    ),
)  # fmt: skip
