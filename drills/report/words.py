"""Makes text that graded code can influence fit to be shown: no control characters, no endless lines.

Markup needs no escaping here: the screens build `rich.text.Text` from plain strings and never parse markup.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 400
"""Characters of a cleaned text, unless asked otherwise."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_MARKS_IN_A_ROW = 2

_ASCII = str.maketrans(
    {
        "·": "-", "⋅": "*", "…": "...", "→": "->", "←": "<-", "×": "x", "−": "-", "–": "-", "—": "-", "∞": "inf",
        "≤": "<=",
        "≥": ">=", "≠": "!=", "≈": "~", "Σ": "sum", "ℓ": "l", "µ": "u", "“": '"', "”": '"', "‘": "'", "’": "'",
        "√": "sqrt", "█": "#", "░": ".", "▶": ">", "│": "|", "─": "-", "═": "=", "▌": "|", "•": "*", "⌈": "ceil(",
        "⌉": ")", "⌊": "floor(", "⌋": ")", "∈": "in", "∉": "not in", "∪": "u", "∩": "n", "∅": "{}", "⊕": "(+)",
        "Π": "prod", "⇒": "=>", "⇔": "<=>", "⋯": "...", "′": "'", "±": "+-", "∝": "~", "≪": "<<", "≫": ">>", "ℝ": "R",
        "μ": "u", "σ": "sigma", "α": "alpha", "β": "beta", "λ": "lambda", "ε": "eps", "τ": "tau", "ᵀ": "^T",
        **{chr(0x2080 + digit): str(digit) for digit in range(10)},
    }
)  # fmt: skip
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_POWER = re.compile(f"[{_SUPERSCRIPTS}]+")
_POWERS = str.maketrans(_SUPERSCRIPTS, "0123456789+-")


def clean(text: object, limit: int = LONGEST) -> str:
    """One line of `text`: control, bidirectional and invisible characters removed, white space run together, capped."""
    return " ".join(clean_lines(text, limit).split())


def clean_lines(text: object, limit: int = LONGEST) -> str:
    """Like `clean`, but line ends and indents stay; a tab becomes four blanks."""
    raw = text if isinstance(text, str) else str(text)
    raw = raw[: 8 * limit].replace("\r\n", "\n").replace("\t", "    ")
    if raw.isascii() and raw.replace("\n", "").isprintable():  # most text: nothing of it has to go
        return cap(raw, limit)
    kept: list[str] = []
    marks = 0
    for character in _ESCAPES.sub("", raw):
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if character == "\n" or (category not in _HIDDEN and marks <= _MARKS_IN_A_ROW):
            kept.append(character)
    return cap("".join(kept), limit)


def cap(text: str, limit: int) -> str:
    """At most `limit` characters of `text`, the last of them "…" if some were left out."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def ascii_only(text: str) -> str:
    """`text` in ASCII, for terminals and logs that have nothing else; what has no counterpart becomes "?"."""
    text = _POWER.sub(lambda power: "^" + power[0].translate(_POWERS), text)
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def shorten_path(path: str, limit: int) -> str:
    """A path in at most `limit` characters: the middle folders give way to "…", the file's name stays."""
    if len(path) <= limit:
        return path
    head, _, tail = path.rpartition("/")
    room = limit - len(tail) - 2
    return f"{head[:room]}…/{tail}" if room > 0 else "…" + path[-(limit - 1) :]


def plural(count: int, noun: str) -> str:
    """ "1 test", "2 tests"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
