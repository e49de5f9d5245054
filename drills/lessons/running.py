"""l1's recurrence, with a fault built in, over attention's scores: what later lessons' mistakes are built from.

Never used by graded code.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from drills.lessons.softmax_formulas import Recurrence

KEY_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Keys a step that a kernel may take."""

NOT_RESCALED = {
    "o_not_rescaled": Recurrence(rescale_o="none"),
    "l_not_rescaled": Recurrence(rescale_l="none"),
    "nothing_rescaled": Recurrence(rescale_l="none", rescale_o="none"),
    "factor_upside_down": Recurrence(rescale_l="inverted", rescale_o="inverted"),
}
"""The old sums as they should not be carried over, by the name that mistakes end in."""

UPSIDE_DOWN_FROM_THE_START = Recurrence(rescale_l="inverted", rescale_o="inverted", first_step=False)
"""exp(m_new - (-inf)) in the first step: 0 * inf is NaN."""

RESCALED_SAYS = {
    "o_not_rescaled": "The running output was not rescaled when the max moved, though l was. Both carry the factor ",
    "l_not_rescaled": "l was not rescaled when the max moved, though the running output was. Both carry the factor ",
    "nothing_rescaled": "Neither l nor the running output was rescaled when the max moved. Both carry the factor ",
    "factor_upside_down": "The factor of the old sums is upside down: a larger max makes old terms smaller. It is ",
}
"""What is said of each, up to the factor itself, which depends on the base."""


def run_heads(rule: Recurrence, block: int, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x[..., H, L], v[L, H, D] → m[..., H], l[..., H], o[..., H, D] as `rule` leaves them, o not divided by l."""
    *leading, heads, keys = x.shape
    rows = math.prod(leading)
    found = [rule.run(x[..., h, :].reshape(rows, keys), block, v[:, h]) for h in range(heads)]
    m, l, o = (torch.stack(items, 1) for items in zip(*found, strict=True))
    return m.reshape(*leading, heads), l.reshape(*leading, heads), o.reshape(*leading, heads, v.shape[-1])


def over_l(o: Tensor, l: Tensor) -> Tensor:
    """o / l; o where l is not positive."""
    return o / torch.where(l > 0, l, 1.0)[..., None]


def carried(how: str, m: Tensor, m_new: Tensor, first_step: bool = True) -> Tensor:
    """What an old sum is multiplied by: "keep" for exp(m - m_new), "none", "inverted" for exp(m_new - m)."""
    if how == "none":
        return torch.ones_like(m)
    if how == "keep":
        return torch.exp(m - torch.where(m_new == -math.inf, 0.0, m_new))
    return torch.where((m == -math.inf) & first_step, 0.0, torch.exp(m_new - m))
