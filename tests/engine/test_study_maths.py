"""LaTeX becomes text that means the same."""

import pytest

from drills.study.maths import to_text, unknown


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"2^{s_a - s}", "2^(s_a - s)"),
        (r"2^{s_a} v_a", "2^(s_a) v_a"),
        (r"2^{10} x^{-1}", "2¹⁰ x⁻¹"),
        (r"e^x", "e^x"),
        (r"\log_2 e", "log₂ e"),
        (r"\frac{a + b}{c}", "(a + b)/c"),
        (r"\frac{1}{Z(I)} \sum_{i \in I} u_i", "1/Z(I) Σ_(i ∈ I) u_i"),
        (r"\frac{1}{\ell}\sum_j v_j", "1/ℓ Σ_j v_j"),
        (r"1/\sqrt{D}", "1/√D"),
        (r"\sqrt{a + b}", "√(a + b)"),
        (r"-\infty", "-∞"),
        (r"\lceil L / N \rceil", "⌈L / N⌉"),
        (r"\{0, 1\}", "{0, 1}"),
        (r"m_{\text{new}}", "m_new"),
        (r"\mathbb{R}^{n}", "ℝ^n"),
        (r"a \qquad b", "a    b"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a = b\nc = d"),
        (r"\left( a \right)", "(a)"),
        (r"\hat{m}", "m̂"),
        (r"a \cdot b", "a ⋅ b"),
        (r"\nonsense x", "nonsense x"),
        ("", ""),
        (r"\frac{a", "a/()"),
    ],
)
def test_formulas(latex, text):
    assert to_text(latex) == text


def test_unknown_commands_are_listed():
    assert unknown(r"\frac{\nonsense}{\exp(x)} \\ \{ \} \text{a}") == ["nonsense"]
