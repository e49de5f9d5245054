"""What a page looks like in a terminal."""

import io
import re

import pytest
from rich.console import Console

from drills import catalog
from drills.report.words import ascii_only
from drills.study.render import one_line, show

SOURCE = """\
# A title

Words with `code`, **weight** and [a link](https://example.org), and $2^{s_a - s}$
over two lines. See [below](#below).

## Below

- first
- second, which is too long for one line of this width
  - inside

1. one

2. two

| name | what it is |
|---|---|
| `merge_state` | two states of every position and head |
| `s` | a logarithm |

```python
>>> x = 1  # a comment
```

```math
a = b \\qquad c = d
```

```quiz
type: number
```

![a strip of cells](strip.svg)

> quoted

<details><summary>Why?</summary>

Because.

</details>
"""

EXPECTED = """\
 A title
 ═══════

 Words with code, weight and a link, and
 2^(s_a - s) over two lines. See below.

 Below
 ─────

  • first
  • second, which is too long for one line
    of this width

     • inside

  1. one

  2. two

   name         what it is
   ─────────────────────────────────────────
   merge_state  two states of every position
                and head
   s            a logarithm

   >>> x = 1  # a comment

   a = b    c = d

 [figure: a strip of cells]

 ▌ quoted

 Why?

 Because.
"""


def shown(source, width, color=False):
    file = io.StringIO()
    system = "truecolor" if color else None
    show(
        Console(file=file, width=width, color_system=system, force_terminal=color, legacy_windows=False),
        source,
        indent=1,
    )
    return file.getvalue()


def test_a_page_as_text():
    assert shown(SOURCE, 44) == EXPECTED


def test_color_only_adds_escapes():
    colored = shown(SOURCE, 44, color=True)
    assert "\x1b]8;" in colored, "a terminal gets the links"
    assert re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", colored) == EXPECTED


def test_words_longer_than_a_line_are_broken():
    assert shown("abcdefghij klm", 7) == " abcdef\n ghij\n klm\n"


def test_code_longer_than_a_line_is_broken():
    assert shown("```\nabcdefgh\n```", 9) == "   abcdef\n   gh\n"


def test_a_diagram_is_told_in_sentences():
    chart = '```mermaid\nflowchart LR\n    A["one<br/>x"] -->|"a word"| B["the second"]\n```'
    note = "   (a diagram: drawn on GitHub)\n"
    assert shown(chart, 60) == note + "   one (x) → the second: a word\n"
    assert shown("```mermaid\npie\n```", 60) == note


def test_formulas_too_long_for_one_line_go_below_each_other():
    long = "a_{long} = " + " + ".join("bcdefgh" * 2 for _ in range(3))
    assert shown(f"```math\n{long} \\qquad {long}\n```", 80).count("\n") == 2


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("lesson", [one for one in catalog.lessons() if one.page.is_file()], ids=lambda one: one.short)
def test_no_line_of_a_page_is_wider_than_the_terminal(lesson, width):
    found = shown(lesson.page.read_text(encoding="utf-8"), width).splitlines()
    assert max(map(len, found)) <= min(width, 100)
    assert not [line for line in found if line != line.rstrip()]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("What is $s_a$?\n\nMore.", "What is s_a?"),
        ("one\ntwo", "one two"),
        ("```python\nx\n```", ""),
        ("a word of many", "a word of…"),
    ],
)
def test_the_first_words_of_a_question(source, line):
    assert one_line(source, 12) == line


@pytest.mark.parametrize("lesson", [one for one in catalog.lessons() if one.page.is_file()], ids=lambda one: one.short)
def test_every_sign_of_a_page_has_a_counterpart_in_ascii(lesson):
    signs = set(shown(lesson.page.read_text(encoding="utf-8"), 80))
    assert not [sign for sign in signs if ord(sign) > 127 and "?" in ascii_only(sign)]


def test_powers_stay_powers_in_ascii():
    assert ascii_only("2³¹ −10⁴ x⁻¹ log₂ m²") == "2^31 -10^4 x^-1 log2 m^2"


def test_a_product_is_a_star_in_ascii_in_prose_and_in_formulas():
    assert ascii_only(shown("Row i · H + h, and $2 \\cdot D$ bytes.", 60)) == " Row i * H + h, and 2 * D bytes.\n"
