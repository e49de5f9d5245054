"""The misconceptions about cascade and multi_level_cascade that are recognized, with what is said to the learner.

The formulas stand in cascade_formulas.py, level_formulas.py and head_formulas.py; attend_mistakes.py lists what goes
wrong in the two halves. Never used by graded code.
"""

from __future__ import annotations

import torch

from drills.lessons import attend_draws as draws
from drills.lessons import cascade_formulas as formulas
from drills.lessons import head_formulas as heads
from drills.lessons import level_formulas as level
from drills.lessons.attend_formulas import log2e_in_the_default_only, nan_at_scale_zero, scaled_by, without_sign
from drills.lessons.attend_mistakes import (
    ADDRESS,
    AT_ZERO,
    DEFAULT_ONLY,
    FULL,
    HEAD,
    IN_ORDER,
    LAST,
    OVER,
    PAGED,
    PHYSICAL,
    POSITIVE,
    SCALE,
    SHARED,
    STRIDES,
)
from drills.lessons.base import Mistake
from drills.lessons.key_formulas import keys_of_full_pages, keys_sorted
from drills.lessons.paging import draw_cascade, draw_levels, group_of
from drills.lessons.strides import ignoring, with_strides

BASE = "one-base-for-both-sides"
WEIGHTS = "averaging-the-two-sides"
NO_KEYS = "a-request-with-no-suffix"
GROUPS = "every-level-and-every-group"
ZERO = "A scale of 0 was taken for none: `scale or …` replaces 0 as well. Ask whether scale is None.", SCALE
UNSTRIDED = ignoring(formulas.merged_parts(), (0,), (1, 2), (3,))
TYPES = (None, torch.float16, torch.bfloat16)


def at_zero(right):
    """A scale of 0 replaced by the default."""
    return lambda *args: right(*args[:-1]) if isinstance(args[-1], float) and args[-1] == 0.0 else right(*args)


def _cascade(name, formula, says, anchor, **more) -> Mistake:
    return Mistake(f"cascade_{name}", "cascade", formula, says, anchor, **more)


def _levels(name, formula, says, anchor, **more) -> Mistake:
    return Mistake(f"levels_{name}", "multi_level_cascade", formula, says, anchor, **more)


CASCADE = (
    _cascade(
        "average", formulas.averaged,
        "The shared and the own result were averaged. Each weighs 2^s: a long prefix counts for more than a short "
        "suffix.", WEIGHTS,
    ),
    _cascade(
        "added", formulas.added,
        "The shared and the own result were added. Both are normalized: each weighs its share of 2^s.", WEIGHTS,
    ),
    _cascade(
        "weights_swapped", formulas.swapped,
        "The two weights are swapped: the shared result has the own side's, and the reverse.", WEIGHTS,
    ),
    _cascade(
        "merged_with_exp", formulas.merged_with_exp,
        "The two sides were merged with e^s. s is base 2: a side weighs 2^s.", BASE,
    ),
    _cascade(
        "shared_natural", formulas.shared_natural,
        "The shared side's s is a natural log and the own side's base 2. Both must be base 2 before they are merged.",
        BASE,
    ),
    _cascade(
        "own_natural", formulas.own_natural,
        "The own side's s is a natural log and the shared side's base 2. Both must be base 2 before they are merged.",
        BASE,
    ),
    _cascade(
        "natural_s", formulas.result_natural,
        "The merged s is a natural log. It must be base 2, as both sides' s are.", BASE,
    ),
    _cascade(
        "prefix_twice", formulas.prefix_twice,
        "The prefix was counted twice: once shared and once more on the request's own side.",
        "the-prefix-counted-twice",
    ),
    _cascade(
        "empty_suffix_nan", formulas.nan_where_empty(1, True),
        "A request with no page of its own became NaN. Its own state is (0, -inf): shift by 0 where s is -inf and "
        "divide by 1 where the sum is 0.",
        NO_KEYS, cases=draws.draw_suffix_missing, variants=(formulas.nan_where_empty(1, False),),
    ),
    _cascade(
        "no_prefix_nan", formulas.nan_where_empty(0, False),
        "A prefix with no key made NaN. The shared state is then (0, -inf): divide by 1 where the sum is 0.",
        NO_KEYS, cases=draws.draw_prefix_missing, variants=(formulas.nan_where_empty(0, True),),
    ),
    _cascade(
        "shared_s", formulas.with_s(lambda prefix, own: prefix),
        "s is that of the prefix alone. The merged s is the log of both sums: log2(2^s_shared + 2^s_own).",
        "s-merges-too",
    ),
    _cascade(
        "s_is_max", formulas.with_s(torch.maximum),
        "s is the larger of the two. The merged s is the log of both sums: log2(2^s_shared + 2^s_own).",
        "s-merges-too",
    ),
    _cascade(
        "s_is_sum", formulas.with_s(torch.add),
        "The two s were added. It is their powers that add: s = log2(2^s_shared + 2^s_own).", "s-merges-too",
    ),
    _cascade(
        "own_scale_ignored", formulas.merged_parts(own_scaled=False),
        "The scale given reached the prefix only. Hand it to both sides.", SCALE,
        cases=draws.with_scale(draw_cascade),
    ),
    _cascade(
        "shared_scale_ignored", formulas.merged_parts(shared_scaled=False),
        "The scale given reached the own pages only. Hand it to both sides.", SCALE,
        cases=draws.with_scale(draw_cascade),
    ),
    _cascade(
        "scale_ignored", formulas.merged_parts(shared_scaled=False, own_scaled=False),
        "The scale given was ignored: 1/sqrt(D) is only the default.", SCALE, cases=draws.with_scale(draw_cascade),
    ),
    _cascade(
        "log2e_in_the_default_only", scaled_by(formulas.merged_parts(), log2e_in_the_default_only), DEFAULT_ONLY, SCALE,
        cases=draws.with_scale(draw_cascade),
    ),
    _cascade(
        "scale_positive", scaled_by(formulas.merged_parts(), without_sign), POSITIVE, SCALE,
        cases=draws.with_negative_scale(draw_cascade),
    ),
    _cascade(
        "shifted_by_one_side", formulas.shifted_by_side(1, True),
        "One side's s was subtracted, not the larger of the two: the power overflows where the other's is far above.",
        "the-running-max", cases=draws.draw_far_sides,
        variants=tuple(formulas.shifted_by_side(*way) for way in ((1, False), (0, True), (0, False))),
    ),
    _cascade(
        "sides_in_half", formulas.sides_in_half(),
        "A side's v was rounded to half precision before the merge. A state that will be merged stays in float32.",
        "levels-merged-in-half-precision", cases=draws.draw_sides_that_cancel,
        variants=(formulas.sides_in_half(torch.float16),),
    ),
    _cascade("scale_zero_is_none", at_zero(formulas.merged_parts()), *ZERO, cases=draws.with_scale_zero(draw_cascade)),
    _cascade("head_modulo", formulas.MODULO, *HEAD),
    _cascade("head_over_hkv", heads.cascade, *OVER, cases=draws.with_six_heads(draw_cascade)),
    _cascade(
        "masked_then_scaled", nan_at_scale_zero(formulas.merged_parts()), *AT_ZERO,
        cases=draws.with_scale_zero(draw_cascade),
    ),
    _cascade(
        "strides_ignored", UNSTRIDED["formula"], f"q, the prefix or the cache {STRIDES}", ADDRESS,
        cases=with_strides(draw_cascade),
        variants=(*UNSTRIDED["variants"], formulas.q_unstrided(0), formulas.q_unstrided(1)),
    ),
    _cascade("physical_order", formulas.cascade_with_keys(keys_sorted), IN_ORDER, PHYSICAL),
    _cascade("last_len_ignored", formulas.cascade_with_keys(keys_of_full_pages), FULL, LAST),
)  # fmt: skip

LEVELS = (
    _levels(
        "in_half", level.levels_in_half(None),
        "The levels were merged one after another with (v, s) rounded to half precision each time. Keep both in "
        "float32 until the last merge.",
        "levels-merged-in-half-precision", cases=draws.draw_half_levels,
        variants=tuple(level.levels_in_half(dtype, parts) for dtype in TYPES for parts in (True, False))[1:],
    ),
    _levels(
        "shifted_by_one", level.shifted_by_one(0, True),
        "The s so far, or that of the new level, was subtracted, not the larger of the two: the power overflows where "
        "the other is far above it.",
        "the-running-max", cases=draws.draw_far_levels,
        variants=tuple(level.shifted_by_one(*way) for way in ((0, False), (1, True), (1, False))),
    ),
    _levels(
        "v_in_half", level.levels_v_in_half(None, False),
        "A level's v was rounded to half precision before the merge. A state that will be merged stays in float32.",
        "levels-merged-in-half-precision", cases=draws.draw_levels_that_cancel,
        variants=tuple(level.levels_v_in_half(dtype, on) for dtype in TYPES[:2] for on in (False, True))[1:],
    ),
    _levels(
        "log2e_in_the_default_only", level.log2e_in_the_default_only, DEFAULT_ONLY, SCALE,
        cases=draws.with_scale(draw_levels),
    ),
    _levels(
        "scale_positive", level.scale_without_sign, POSITIVE, SCALE, cases=draws.with_negative_scale(draw_levels),
    ),
    _levels(
        "last_group_goes_on", level.by_group(level.group_without_an_end),
        "The last group was taken to hold every request from its first on. It ends before request group_indptr[-1].",
        GROUPS, cases=draws.draw_early_end,
    ),
    _levels(
        "averaged", level.levels_averaged, "The levels' results were averaged. Each weighs 2^s.", WEIGHTS,
        variants=(level.levels_averaged_in_turn(True), level.levels_averaged_in_turn(False)),
    ),
    _levels(
        "one_left_out", level.all_levels_but(-1),
        "The last level is missing from the result. Every level counts, the last one included.", GROUPS,
    ),
    _levels(
        "first_left_out", level.all_levels_but(0),
        "The first level is missing from the result. Every level counts, the first one included.", GROUPS,
    ),
    _levels(
        "strides_ignored", says=f"q or the cache {STRIDES}", anchor=ADDRESS, cases=with_strides(draw_levels),
        **ignoring(level.by_group(group_of), (0,), (1,)),
    ),
    _levels("head_modulo", level.levels_modulo, *HEAD),
    _levels("head_over_hkv", heads.levels, *OVER, cases=draws.with_six_heads(draw_levels)),
    _levels(
        "masked_then_scaled", nan_at_scale_zero(level.by_group(group_of)), *AT_ZERO,
        cases=draws.with_scale_zero(draw_levels),
    ),
    _levels(
        "pages_from_zero", level.with_own_table(level.pages_from_zero),
        "A level's kv_indptr was taken to start at 0. Group g owns kv_indices[kv_indptr[g] : kv_indptr[g + 1]], "
        "whatever kv_indptr[0] is.",
        PHYSICAL,
    ),
    _levels("last_len_ignored", level.full_last_pages, FULL, LAST),
    _levels(
        "last_len_of_first_group", level.with_own_table(level.length_of_first_group),
        "Every group got the first one's kv_last_page_len. Group g has kv_last_page_len[g].", LAST,
    ),
    _levels(
        "last_len_by_request", level.last_len_by_request(level.LAST_BY_REQUEST[0]),
        "kv_last_page_len was looked up by the number of the request. A level has one for each group: "
        "kv_last_page_len[g].",
        LAST, variants=tuple(map(level.last_len_by_request, level.LAST_BY_REQUEST[1:])),
        cases=draws.draw_as_many_groups,
    ),
    _levels(
        "groups_from_zero", level.by_group(level.group_from_zero),
        "The first group was taken to begin at request 0. It begins at request group_indptr[0].", GROUPS,
        cases=draws.draw_late_groups,
    ),
    _levels(
        "first_request_only", level.by_group(level.first_request_of_group),
        "Of every group only the first request got its keys. All of group_indptr[g] up to group_indptr[g + 1] share "
        "them.",
        GROUPS,
    ),
    _levels("first_only", level.one_level(0), "Only the first level reached the result.", GROUPS),
    _levels("last_only", level.one_level(-1), "Only the last level reached the result.", GROUPS),
    _levels(
        "s_of_one", level.s_of_level(0), "s is that of one level alone. s merges too: it is the log of all sums.",
        "s-merges-too", variants=(level.s_of_level(-1),),
    ),
    _levels(
        "natural", level.levels_natural,
        "The levels' s are natural logs and were merged with exp2. Use base 2 throughout.", BASE,
    ),
    _levels(
        "scale_ignored", level.levels_default_scale, "The scale given was ignored: 1/sqrt(D) is only the default.",
        SCALE, cases=draws.with_scale(draw_levels),
    ),
    _levels(
        "scale_zero_is_none", at_zero(level.by_group(group_of)), *ZERO, cases=draws.with_scale_zero(draw_levels),
    ),
    _levels(
        "group_by_number", level.by_group(level.group_of_its_number),
        "Request i was taken to be in group i. Group g holds requests group_indptr[g] up to group_indptr[g + 1].",
        GROUPS,
    ),
    _levels(
        "equal_groups", level.by_group(level.group_of_equal_size(lambda bounds, n: int(bounds[-1]) // n)),
        "Every group was taken to have equally many requests. Group g holds group_indptr[g] up to "
        "group_indptr[g + 1].",
        GROUPS, cases=draws.draw_uneven_groups,
    ),
    _levels(
        "group_end_included", level.by_group(level.group_with_its_end),
        "A group was taken to hold request group_indptr[g + 1] too. That one belongs to the next group.", GROUPS,
        variants=(level.by_group(level.first_group_with_its_end), level.groups_overlap),
        cases=draws.draw_uneven_groups,
    ),
    _levels(
        "outsider_nan", level.outsider_nan(True),
        "A request in no group of a level became NaN. At that level it is empty: s = -inf, and nothing writes it for "
        "you.",
        GROUPS, cases=draws.draw_outsider, variants=(level.outsider_nan(False),),
    ),
)  # fmt: skip

MISTAKES = (*SHARED, *PAGED, *CASCADE, *LEVELS)
