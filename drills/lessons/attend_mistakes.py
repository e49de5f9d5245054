"""The misconceptions about attend_shared and attend_paged that are recognized, with what is said to the learner.

The formulas stand in attend_formulas.py, key_formulas.py and head_formulas.py. Never used by graded code.
"""

from __future__ import annotations

from drills.lessons import attend_draws as draws
from drills.lessons import attend_formulas as formulas
from drills.lessons import head_formulas as heads
from drills.lessons import key_formulas as table
from drills.lessons.base import Mistake
from drills.lessons.paging import draw_paged, draw_shared, keys_of
from drills.lessons.running import NOT_RESCALED, RESCALED_SAYS, UPSIDE_DOWN_FROM_THE_START
from drills.lessons.softmax_formulas import Recurrence
from drills.lessons.strides import ignoring, with_strides

BLOCKS = (16, 1, 32, 64, 128)
"""Keys a step."""

HEAD = "Query head h was sent to KV head h % Hkv. Its KV head is h // G, with G = Hq / Hkv.", "which-kv-head"
OVER = "Query head h was sent to KV head h // Hkv. Its KV head is h // G, with G = Hq / Hkv.", "which-kv-head"
AT_ZERO = (
    "Scores masked with -inf were scaled afterwards, and (-inf) * 0 is NaN. Scale first, then mask.",
    "the-scale",
)
NATURAL = (
    "s is the natural log of the softmax sum. It must be base 2: divide by ln 2, or use log2 and exp2 throughout.",
    "one-base-for-both-sides",
)
PHYSICAL, LAST, SCALE, STATE = "pages-in-physical-order", "the-last-page", "the-scale", "a-state-from-m-and-l"
ADDRESS, RUNNING = "an-address-with-its-axes-swapped", "the-running-max"
SWAPPED = "The keys were taken for the values, and the values for the keys."
STRIDES = "was read as if it were contiguous: use its strides, or copy it with contiguous() first."

DEFAULT_ONLY = "log2(e) was folded into the default scale alone. A scale that is given needs it as well."

POSITIVE = "The sign of the scale was lost. A scale below 0 is legal: multiply q·k by it as it is."

SCALES = (
    ("scale_forgotten", formulas.forgotten, SCALE, None,
     "The scores were not scaled: multiply q·k by scale, 1/sqrt(D) unless given."),
    ("scale_ignored", formulas.ignored, SCALE, draws.with_scale,
     "The scale given was ignored: 1/sqrt(D) is only the default."),
    ("scale_zero_is_none", formulas.zero_is_none, SCALE, draws.with_scale_zero,
     "A scale of 0 was taken for none: `scale or …` replaces 0 as well. Ask whether scale is None."),
    ("scale_positive", formulas.without_sign, SCALE, draws.with_negative_scale, POSITIVE),
    ("scale_of_the_block", formulas.of_the_block, SCALE, draws.with_five_columns,
     "The default scale was taken from D rounded up to a power of two. It is 1/sqrt(D), padding aside."),
    ("scaled_twice", formulas.twice, SCALE, None,
     "The scale was applied twice. Fold scale * log2(e) into q or into the scores, once."),
    ("log2e_in_the_default_only", formulas.log2e_in_the_default_only, SCALE, draws.with_scale, DEFAULT_ONLY),
    ("log2e_missing", formulas.without_log2e, SCALE, None,
     "exp2 was taken of scores that lack log2(e). e^x is 2^(x * log2(e)): fold it into the scale."),
)  # fmt: skip
"""id, the scale that is taken, anchor, change of the cases, what is said."""

SLIPS = (
    ("not_divided", formulas.not_divided, (),
     "v was not divided by l. A state's v is normalized; s keeps what its keys weigh."),
    ("s_without_m", formulas.without_m, (),
     "s lacks the max that was subtracted before the weights: s = m + log2(l)."),
    ("m_plus_l", formulas.m_plus_l, (), "s is m + l. It is m plus the logarithm of l: m + log2(l)."),
    ("ln_of_l", formulas.ln_of_l, (), "ln of l was added to an m in base 2. Use log2."),
    ("m_stays_natural", formulas.m_stays_natural, (),
     "log2 of l was added to a natural m. With log2(e) folded into the scale both are base 2."),
    ("empty_nan", formulas.empty_nan, (formulas.empty_nan_in_both,),
     "No key at all gave 0 / 0. That state is (0, -inf): divide by 1 where l is 0."),
)  # fmt: skip
"""id, how a state is made of (m, l, o), the same in other code, what is said."""


def _of_both(prefix, exercise, right, by_rule, draw, empty, long, equal, keys=None) -> tuple[Mistake, ...]:
    """The misconceptions that attend_shared and attend_paged have in common.

    draw, empty, long: ordinary cases, cases with a query that has no key, cases in which the max keeps moving.
    equal: cases with many keys of one score, in half precision.
    """
    found = [
        Mistake(f"{prefix}_{name}", exercise, formulas.scaled_by(right, change), says, anchor,
                cases=turned and turned(draw))
        for name, change, anchor, turned, says in SCALES
    ]  # fmt: skip
    found.append(
        Mistake(
            f"{prefix}_scores_in_half", exercise, formulas.scores_in_half(False, keys),
            "The scores were rounded to half precision before the softmax. Keep what tl.dot returns in float32.", STATE,
            cases=draws.in_half(draw), variants=(formulas.scores_in_half(True, keys),),
        )
    )  # fmt: skip
    in_half = [formulas.summed_in_half(block, keys) for block in BLOCKS]
    found.append(
        Mistake(
            f"{prefix}_acc_in_half", exercise, in_half[0],
            "The running output is kept in half precision, where small addends are lost. Keep acc in float32.", RUNNING,
            cases=equal, variants=tuple(in_half[1:]),
        )
    )  # fmt: skip
    for name, slip, others, says in SLIPS:
        forms = [formulas.with_slip(one, keys) for one in (slip, *others)]
        cases, anchor = (empty, "a-request-with-no-suffix") if name == "empty_nan" else (None, STATE)
        found.append(
            Mistake(f"{prefix}_{name}", exercise, forms[0], says, anchor, cases=cases, variants=tuple(forms[1:]))
        )
    divided = [by_rule(Recurrence(divide=True), block) for block in BLOCKS]
    found.append(
        Mistake(
            f"{prefix}_divided_every_step", exercise, divided[0],
            "acc was divided by l after every block, and carried on as if it were not. Divide once, at the end.",
            RUNNING, cases=long, variants=tuple(divided[1:]),
        )
    )  # fmt: skip
    for name, rule in NOT_RESCALED.items():
        ways = [by_rule(rule, block) for block in BLOCKS]
        if name == "factor_upside_down":
            ways += [by_rule(UPSIDE_DOWN_FROM_THE_START, block) for block in BLOCKS]
        says = RESCALED_SAYS[name] + "2^(m_old - m_new)."
        found.append(
            Mistake(f"{prefix}_{name}", exercise, ways[0], says, RUNNING, cases=long, variants=tuple(ways[1:]))
        )
    return tuple(found)


UNSHIFTED = Recurrence(shift=False, single=True)

SHARED = (
    Mistake("shared_head_modulo", "attend_shared", lambda *a: formulas.shared(*a, kv_head=formulas.modulo), *HEAD),
    Mistake("shared_head_over_hkv", "attend_shared", heads.shared, *OVER, cases=draws.with_six_heads(draw_shared)),
    Mistake(
        "shared_masked_then_scaled", "attend_shared", formulas.nan_at_scale_zero(formulas.shared), *AT_ZERO,
        cases=draws.with_scale_zero(draw_shared),
    ),
    Mistake("shared_natural_s", "attend_shared", lambda *a: formulas.to_natural(formulas.shared(*a)), *NATURAL),
    *_of_both(
        "shared", "attend_shared", formulas.shared, formulas.by_rule, draw_shared, draws.draw_no_prefix,
        draws.draw_long_prefix, draws.draw_equal_prefix,
    ),
    Mistake(
        "shared_no_max",
        "attend_shared",
        formulas.by_rule(UNSHIFTED, 16),
        "The max was not subtracted: 2^x overflows float32 from 128 on and is 0 below -149. Take exp2(x - m).",
        RUNNING,
        cases=draws.draw_huge_scores,
        variants=(formulas.by_rule(UNSHIFTED, 16, guarded=False),),
    ),
    Mistake(
        "shared_tail_counted",
        "attend_shared",
        formulas.by_rule(Recurrence(pad=0.0), 16),
        "Keys past P scored 0 and counted. Set their score to -inf after the product: a masked load gives k = 0, and "
        "q·0 is a score like any other.",
        "the-last-block",
        variants=tuple(formulas.by_rule(Recurrence(pad=0.0), block) for block in (2, 4, 8, *BLOCKS[2:])),
    ),
    Mistake(
        "shared_tail_dropped",
        "attend_shared",
        formulas.whole_blocks_only(16),
        "The keys past the last whole block were left out. Round the number of blocks up, and mask the last one.",
        "the-last-block",
        variants=tuple(formulas.whole_blocks_only(block) for block in (2, 4, 8, *BLOCKS[2:])),
        cases=draws.draw_long_prefix,
    ),
    Mistake(
        "shared_heads_first",
        "attend_shared",
        formulas.keys_heads_first,
        "k and v were read as [Hkv, P, D]. Key n of KV head h starts at (n * Hkv + h) * D.",
        ADDRESS,
    ),
    Mistake(
        "shared_rows_heads_first",
        "attend_shared",
        formulas.rows_heads_first,
        "q and the result were addressed as [Hq, B, D]. Request b, head h is row b * Hq + h.",
        ADDRESS,
    ),
    Mistake(
        "shared_keys_as_values",
        "attend_shared",
        formulas.keys_as_values,
        "The keys were read again where the values should be.",
        ADDRESS,
    ),
    Mistake(
        "shared_keys_and_values_swapped", "attend_shared", formulas.keys_and_values_swapped, SWAPPED, ADDRESS
    ),
    Mistake(
        "shared_strides_ignored", "attend_shared", says=f"q, k or v {STRIDES}", anchor=ADDRESS,
        cases=with_strides(draw_shared), **ignoring(formulas.shared, (0,), (1,), (2,), (1, 2)),
    ),
)  # fmt: skip


def _keys(name, keys, says, anchor, cases=None) -> Mistake:
    """attend_paged with another idea of which keys a request has."""
    return Mistake(f"paged_{name}", "attend_paged", table.with_keys(keys), says, anchor, cases=cases)


IN_ORDER = (
    "The pages were taken in the order in which they lie in the cache, so the wrong page was treated as the last. "
    "Their order is that of `indices`."
)
FULL = "All slots of the last page were used. It holds last_page_len keys; what follows is not part of the request."

PAGED = (
    Mistake("paged_head_modulo", "attend_paged", lambda *a: formulas.paged(*a, kv_head=formulas.modulo), *HEAD),
    Mistake("paged_head_over_hkv", "attend_paged", heads.paged, *OVER, cases=draws.with_six_heads(draw_paged)),
    Mistake(
        "paged_masked_then_scaled", "attend_paged", formulas.nan_at_scale_zero(formulas.paged), *AT_ZERO,
        cases=draws.with_scale_zero(draw_paged),
    ),
    Mistake("paged_natural_s", "attend_paged", lambda *a: formulas.to_natural(formulas.paged(*a)), *NATURAL),
    *_of_both(
        "paged", "attend_paged", formulas.paged, formulas.paged_by_rule, draw_paged, draws.draw_no_pages,
        draws.draw_long_run, draws.draw_equal_run, keys_of,
    ),
    _keys("physical_order", table.keys_sorted, IN_ORDER, PHYSICAL),
    _keys("table_ignored", table.keys_without_table,
          "Page indptr[i] + j of the cache was read. The table has one more step: indices[indptr[i] + j] is the page.",
          PHYSICAL),
    _keys("table_starts_at_zero", table.keys_from_entry_zero,
          "indptr was taken to start at 0. Request i owns indices[indptr[i] : indptr[i + 1]], whatever indptr[0] is.",
          PHYSICAL, draws.draw_late_table),
    _keys("runs_start_at_zero", table.keys_from_first_entry,
          "Every request's pages were taken from the first entry of indices on. Request i's begin at indptr[i].",
          PHYSICAL),
    _keys("first_page_only", table.keys_first_page_only,
          "Only the first page of a request was read. It owns all of indices[indptr[i] : indptr[i + 1]].", PHYSICAL),
    _keys("last_len_ignored", table.keys_of_full_pages, FULL, LAST),
    _keys("last_page_dropped", table.keys_without_last_page,
          "The last page was left out. It counts too, with its first last_page_len keys.", LAST),
    _keys("last_key_dropped", table.keys_one_short,
          "The last key of every request is missing: n pages hold (n - 1) * page_size + last_page_len keys.", LAST),
    _keys("last_len_as_index", table.keys_one_more,
          "One slot past the last key counts too. last_page_len is how many keys the last page holds, not an index.",
          LAST),
    _keys("full_last_page_empty", table.keys_but_a_full_last_page,
          "A full last page was taken for an empty one. last_page_len is page_size there: take it as it is, without %.",
          LAST, draws.draw_full_last_pages),
    _keys("last_len_of_every_page", table.keys_short_pages,
          "Every page was cut at last_page_len. Only the last one is: all before it are full.", LAST),
    _keys("last_len_of_first_page", table.keys_first_page_short,
          "The first page was cut at last_page_len, and the last one was not.", LAST),
    Mistake(
        "paged_nan_past_the_end",
        "attend_paged",
        table.weight_zero_is_no_mask,
        "Slots past last_page_len got the weight 0, and 0 * NaN is NaN. Mask the load of v, so that 0 is read there.",
        LAST,
        cases=draws.draw_poisoned_pages,
    ),
    Mistake(
        "paged_one_page_a_block",
        "attend_paged",
        table.with_keys(table.keys_of_one_page_a_block(16)),
        "A block of keys was taken to lie in one page, that of its first key. Look the page up for every key: entry "
        "key // page_size of the request's.",
        PHYSICAL,
        variants=tuple(table.with_keys(table.keys_of_one_page_a_block(block)) for block in (8, 32, 64, 128)),
    ),
    _keys("heads_first", table.keys_heads_first_page,
          "A page was read as [2, Hkv, page_size, D]. In this layout slot t of KV head h starts at (t * Hkv + h) * D.",
          ADDRESS),
    _keys("pairs_inside", table.keys_pairs_inside,
          "A page was read as [page_size, 2, Hkv, D]. All keys of a page come first, then all its values.", ADDRESS),
    _keys("keys_as_values", table.keys_for_both,
          "The keys were read again where the values should be: these start page_size * Hkv * D after the keys.",
          ADDRESS),
    _keys("keys_and_values_swapped", table.keys_swapped, SWAPPED, ADDRESS),
    Mistake(
        "paged_strides_ignored", "attend_paged", says=f"q or the cache {STRIDES}", anchor=ADDRESS,
        cases=with_strides(draw_paged), **ignoring(formulas.paged, (0,), (1,)),
    ),
)  # fmt: skip
