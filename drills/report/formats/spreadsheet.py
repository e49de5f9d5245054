"""Makes text fit for a spreadsheet: no cell is taken for a formula, and a name stays readable.

A cell that begins with a character that starts a formula gets an apostrophe before it: spreadsheets show such a cell as
text. So does a part of a cell after a separator, because a spreadsheet of another country splits lines there.
"""

from __future__ import annotations

import re

from drills.report import words

_FORMULA = "=+\\-@＝＋－＠﹢﹣﹦﹫−⁺⁻⁼"
_STARTS = re.compile(rf"(^|[,;|])([\s\"'’＇]*)([{_FORMULA}])")


def cell(value: object, limit: int = words.LONGEST) -> str:
    """One line of text, safe in any cell."""
    return _STARTS.sub(r"\1'\2\3", words.clean(value, limit))
