"""The misconceptions about cascade attention that are recognized, with what is said to the learner.

The formulas stand in cascade_formulas.py. Never used by graded code.
"""

from __future__ import annotations

from drills.lessons import cascade_formulas as formulas
from drills.lessons.base import Mistake

HEAD = "which-kv-head", "Query head h was sent to KV head h % Hkv. Its KV head is h // G, with G = Hq / Hkv."
BASE = "one-base-for-both-sides"
PHYSICAL = "pages-in-physical-order"
LAST = "the-last-page"

MISTAKES = (
    Mistake(
        "shared_head_modulo", "attend_shared", lambda *a: formulas.shared(*a, kv_head=formulas.modulo), HEAD[1], HEAD[0]
    ),
    Mistake(
        "shared_natural_s",
        "attend_shared",
        lambda *a: formulas.to_natural(formulas.shared(*a)),
        "s is the natural log of the softmax sum. It must be base 2: divide by ln 2, or use log2 and exp2 throughout.",
        BASE,
    ),
    Mistake(
        "shared_scale_forgotten",
        "attend_shared",
        formulas.unscaled_shared,
        "The scores were not scaled: multiply q·k by scale, 1/sqrt(D) unless given.",
        "the-scale",
    ),
    Mistake(
        "paged_physical_order",
        "attend_paged",
        formulas.with_keys(formulas.keys_sorted),
        "The pages were taken in the order in which they lie in the cache, so the wrong page was treated as the last. "
        "Their order is that of `indices`.",
        PHYSICAL,
    ),
    Mistake(
        "paged_table_ignored",
        "attend_paged",
        formulas.with_keys(formulas.keys_without_table),
        "Page indptr[i] + j of the cache was read. The table has one more step: indices[indptr[i] + j] is the page.",
        PHYSICAL,
    ),
    Mistake(
        "paged_last_len_ignored",
        "attend_paged",
        formulas.with_keys(formulas.keys_of_full_pages),
        "All slots of the last page were used. It holds last_page_len keys; what follows is not part of the request.",
        LAST,
    ),
    Mistake(
        "paged_last_page_dropped",
        "attend_paged",
        formulas.with_keys(formulas.keys_without_last_page),
        "The last page was left out. It counts too, with its first last_page_len keys.",
        LAST,
    ),
    Mistake(
        "paged_head_modulo", "attend_paged", lambda *a: formulas.paged(*a, kv_head=formulas.modulo), HEAD[1], HEAD[0]
    ),
    Mistake(
        "paged_natural_s",
        "attend_paged",
        lambda *a: formulas.to_natural(formulas.paged(*a)),
        "s is the natural log of the softmax sum. It must be base 2: divide by ln 2, or use log2 and exp2 throughout.",
        BASE,
    ),
    Mistake(
        "paged_scale_forgotten",
        "attend_paged",
        formulas.unscaled_paged,
        "The scores were not scaled: multiply q·k by scale, 1/sqrt(D) unless given.",
        "the-scale",
    ),
    Mistake(
        "cascade_average",
        "cascade",
        lambda *a: formulas.average(list(formulas.both(*a))),
        "The shared and the own result were averaged. Each weighs 2^s: a long prefix counts "
        "for more than a short suffix.",
        "averaging-the-two-sides",
    ),
    Mistake(
        "cascade_shared_natural",
        "cascade",
        formulas.shared_natural,
        "The shared side's s is a natural log and the own side's base 2. Both must be base 2 before they are merged.",
        BASE,
    ),
    Mistake(
        "cascade_own_natural",
        "cascade",
        formulas.own_natural,
        "The own side's s is a natural log and the shared side's base 2. Both must be base 2 before they are merged.",
        BASE,
    ),
    Mistake(
        "cascade_prefix_twice",
        "cascade",
        formulas.prefix_twice,
        "The prefix was counted twice: once shared and once more on the request's own side.",
        "the-prefix-counted-twice",
    ),
    Mistake(
        "cascade_empty_suffix_nan",
        "cascade",
        formulas.empty_suffix_nan,
        "A request with no page of its own became NaN. Its own state is (0, -inf): shift by 0 where s is -inf and "
        "divide by 1 where the sum is 0.",
        "a-request-with-no-suffix",
        cases=formulas.draw_suffix_missing,
    ),
    Mistake(
        "cascade_shared_s",
        "cascade",
        formulas.only_shared_s,
        "s is that of the prefix alone. The merged s is the log of both sums: log2(2^s_shared + 2^s_own).",
        "s-merges-too",
    ),
    Mistake("cascade_head_modulo", "cascade", formulas.modulo_cascade, HEAD[1], HEAD[0]),
    Mistake(
        "cascade_physical_order",
        "cascade",
        formulas.cascade_with_keys(formulas.keys_sorted),
        "The pages were taken in the order in which they lie in the cache, so the wrong page was treated as the last. "
        "Their order is that of `indices`.",
        PHYSICAL,
    ),
    Mistake(
        "cascade_last_len_ignored",
        "cascade",
        formulas.cascade_with_keys(formulas.keys_of_full_pages),
        "All slots of the last page were used. It holds last_page_len keys; what follows is not part of the request.",
        LAST,
    ),
    Mistake(
        "levels_in_half",
        "multi_level_cascade",
        formulas.levels_in_half,
        "The levels were merged one after another with (v, s) rounded to half precision each time. Keep both in "
        "float32 until the last merge.",
        "levels-merged-in-half-precision",
        cases=formulas.draw_half_levels,
    ),
    Mistake(
        "levels_averaged",
        "multi_level_cascade",
        formulas.levels_averaged,
        "The levels' results were averaged. Each weighs 2^s.",
        "averaging-the-two-sides",
    ),
    Mistake(
        "levels_first_only",
        "multi_level_cascade",
        formulas.first_level_only,
        "Only the first level reached the result.",
        "every-level-and-every-group",
    ),
    Mistake(
        "levels_natural",
        "multi_level_cascade",
        formulas.levels_natural,
        "The levels' s are natural logs and were merged with exp2. Use base 2 throughout.",
        BASE,
    ),
    Mistake(
        "levels_outsider_nan",
        "multi_level_cascade",
        formulas.outsider_nan,
        "A request in no group of a level became NaN. At that level it is empty: s = -inf, and "
        "nothing writes it for you.",
        "every-level-and-every-group",
        cases=formulas.draw_outsider,
    ),
)
