r"""LaTeX as it stands on the pages, written as one line of text: `2^{s_a - s}` becomes `2^(s_a - s)`.

Covers what the pages use and shows the name of any command it does not know. The libraries that turn LaTeX into Unicode
drop the braces of `2^{a-b}` and of fractions, which changes the formula: hence this module. Must never import anything
heavy: `read`, `hint` and `quiz` start with it.
"""

from __future__ import annotations

import re

_WIDE = "\u2003"

SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "lambda": "λ", "mu": "μ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω", "Delta": "Δ", "Sigma": "Σ", "Omega": "Ω",
    "sum": "Σ", "prod": "Π", "int": "∫", "infty": "∞", "ell": "ℓ", "partial": "∂", "nabla": "∇", "emptyset": "∅",
    "varnothing": "∅", "cdot": "⋅", "times": "×", "div": "÷", "pm": "±", "oplus": "⊕", "otimes": "⊗", "odot": "⊙",
    "circ": "∘", "bullet": "•", "star": "*", "ast": "*", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠",
    "ne": "≠", "approx": "≈", "equiv": "≡", "sim": "~", "propto": "∝", "ll": "≪", "gg": "≫", "in": "∈", "notin": "∉",
    "cup": "∪", "cap": "∩", "subset": "⊂", "subseteq": "⊆", "setminus": "∖", "to": "→", "rightarrow": "→",
    "leftarrow": "←", "Rightarrow": "⇒", "implies": "⇒", "iff": "⇔", "mapsto": "↦", "uparrow": "↑", "downarrow": "↓",
    "forall": "∀", "exists": "∃", "land": "∧", "lor": "∨", "lnot": "¬", "lceil": "⌈", "rceil": "⌉", "lfloor": "⌊",
    "rfloor": "⌋", "langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "mid": "|",
    "ldots": "…", "dots": "…", "cdots": "⋯", "vdots": "⋮", "prime": "′", "top": "ᵀ", "quad": _WIDE, "qquad": _WIDE,
    "{": "{", "}": "}", "_": "_", "%": "%", "$": "$", "&": "&", "#": "#", "|": "‖", ",": " ", ";": " ", ":": " ",
    " ": " ", "!": "", "left": "", "right": "", "big": "", "Big": "", "bigl": "", "bigr": "", "Bigl": "", "Bigr": "",
    "displaystyle": "", "limits": "", "nolimits": "",
}  # fmt: skip
"""Commands without arguments."""

PLAIN = ("text", "textbf", "textit", "mathrm", "mathbf", "mathit", "mathsf", "mathtt", "mathcal", "operatorname")
"""Commands that only say in which type their argument is set."""

FUNCTIONS = ("exp", "log", "ln", "max", "min", "sup", "inf", "lim", "arg", "argmax", "argmin", "softmax", "dim", "det")
"""Commands whose text is their name."""

_STRUCTURE = ("frac", "tfrac", "dfrac", "sqrt", "begin", "end", "mathbb", "\\")
_SETS = str.maketrans("RNZQ", "ℝℕℤℚ")
_HATS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "overline": "\u0304", "vec": "\u20d7"}
_UP = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
_DOWN = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)


def to_text(latex: str) -> str:
    """A formula as text; the rows of `aligned`, `cases` and `\\\\` become lines."""
    lines = "".join(_Reader(latex).until(None)).split("\n")
    return "\n".join(_tidy(line) for line in lines if line.strip())


def unknown(latex: str) -> list[str]:
    """The commands of a formula that `to_text` does not know."""
    known = {*SYMBOLS, *PLAIN, *_HATS, *FUNCTIONS, *_STRUCTURE}
    return [token[1:] for token in _TOKEN.findall(latex) if token[0] == "\\" and token[1:] not in known]


class _Reader:
    """One pass over the tokens of a formula."""

    def __init__(self, latex: str) -> None:
        self.tokens = _TOKEN.findall(latex)
        self.at = 0

    def until(self, end: str | None) -> list[str]:
        """The text of what follows up to the token `end`, which is consumed."""
        found: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token == end:
                break
            found.append(self.one(token))
        return found

    def argument(self) -> str:
        """The next group or single token."""
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        if self.at == len(self.tokens):
            return ""
        token = self.tokens[self.at]
        self.at += 1
        return self.one(token)

    def gap(self) -> str:
        """A space if what follows would read as part of the word before it."""
        following = self.tokens[self.at] if self.at < len(self.tokens) else " "
        return " " if following.isalnum() or re.match(r"\\[A-Za-z{(]|[({]", following) else ""

    def one(self, token: str) -> str:
        """The text of one token and of the arguments it takes."""
        if token == "{":
            return "".join(self.until("}"))
        if token == "^":
            power = self.argument()
            return power.translate(_UP) if re.fullmatch(r"-?\d+", power) else f"^{_group(power, '_')}"
        if token == "_":
            index = self.argument()
            return index.translate(_DOWN) if index.isdigit() else f"_{_group(index)}"
        if token == "\\\\":
            return "\n"
        if token == "&":
            return ""
        if token.startswith("\\"):
            return self.command(token[1:])
        return " " if token.isspace() else token

    def command(self, name: str) -> str:
        """The text of a command and of its arguments."""
        if name in ("frac", "tfrac", "dfrac"):
            above, below = self.argument(), self.argument()
            return f"{_group(above)}/{_group(below)}{self.gap()}"
        if name == "sqrt":
            return f"√{_group(self.argument())}"
        if name in ("begin", "end"):
            self.argument()
            return "\n"
        if name == "mathbb":
            return self.argument().translate(_SETS)
        if name in _HATS:
            return self.argument() + _HATS[name]
        if name in PLAIN:
            return self.argument()
        return SYMBOLS.get(name, name)


def _tidy(line: str) -> str:
    """One space between words, none inside brackets; between formulas on one line, four."""
    line = re.sub(r"(?<=[(⌈⌊⟨]) | (?=[)⌉⌋⟩])", "", re.sub(r" +", " ", line))
    return re.sub(rf" ?{_WIDE} ?", "    ", line).strip()


def _group(text: str, breaks: str = "") -> str:
    """In brackets unless it is one word, one number, a call or in brackets already, and holds none of `breaks`."""
    text = text.strip()
    whole = re.fullmatch(r"[\w.′∞ℓ]*\([^()]*\)|[\w.′∞ℓ]+|[^\w\s]", text) and not set(breaks) & set(text)
    return text if whole else f"({text})"
