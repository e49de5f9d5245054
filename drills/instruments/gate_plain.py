"""Whether a kernel says nothing that one GPU target has and another lacks, so that machine code for one tells both.

Plain are loads, stores, arithmetic, reductions and loops. What is not known to be plain is not: products, atomics,
assembler, descriptors, 8-bit floats, other modules' functions, options of a launch beyond warps and stages. A kernel
that is plain but for products of ordinary floats is one in which nothing is left for LLVM and ptxas to refuse: both
translate a few instructions that Triton has chosen.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable

from drills.instruments.gate_spec import Spec, flat
from drills.instruments.gate_text import Text
from drills.instruments.meant import AT_LINE, WORD

LANGUAGE = """
abs arange argmax argmin assume associative_scan bfloat16 broadcast broadcast_to cast cdiv ceil clamp constexpr cos
cumprod cumsum debug_barrier device_assert device_print div_rn dtype element_ty exp exp2 expand_dims fdiv flip float16
float32 float64 floor fma full int1 int16 int32 int64 int8 join load log log2 make_block_ptr math max max_constancy
max_contiguous maximum min minimum multiple_of num_programs permute program_id range ravel reduce reshape rsqrt shape
sigmoid sin softmax split sqrt static_assert static_print static_range store sum swizzle2d tensor to trans type uint16
uint32 uint64 uint8 view where xor_sum zeros zeros_like advance numel T value
"""
PLAIN = frozenset(LANGUAGE.split())
BUILTIN = frozenset(("range", "min", "max", "len", "float", "int", "bool", "abs", "tuple", "print", "isinstance"))
FLOAT8 = re.compile(r"fp8|float8|tensordesc")
MATRIX = PLAIN - {"float64", "int8", "int16", "uint8", "uint16"} | {"dot"}
"""The words of kernels that multiply matrices of ordinary floats."""

MATRIX_TYPE = re.compile(r"\*?k?(fp16|bf16|fp32|[iu](1|32|64))|constexpr")
"""Types of such kernels' arguments."""

SPECIAL = frozenset(("warp_specialize", "flatten", "disallow_acc_multi_buffer"))
"""Keywords of tl.range that change what is made of a loop on one target only."""

MOST_LISTED = 5
"""Arguments of Triton's words without a keyword: further ones of tl.range are those."""

LONGER = frozenset(("make_block_ptr",))
"""Words that need more, and have no such keyword."""

OTHERS = (WORD, "module ", "a Python ")
"""How it begins, what is told of a name that stands for something else than the file's constants and functions."""


def is_plain(text: Text, spec: Spec, words: frozenset[str] = PLAIN) -> bool:
    """Of this specialisation's kernel and all functions of the file that it reaches. words: attributes it may name."""
    kinds = [*flat(spec.signature.values()), *map(str, spec.constants.values())]
    if spec.options or any(FLOAT8.search(kind) for kind in kinds):
        return False
    return all(map(_is_itself, spec.names, spec.names.values())) and _says_nothing_else(text, spec.line, words)


def multiplies_plainly(text: Text, spec: Spec) -> bool:
    """Whether it is plain but for products of float16, bfloat16 and float32."""
    return all(map(MATRIX_TYPE.fullmatch, flat(spec.signature.values()))) and is_plain(text, spec, MATRIX)


@functools.lru_cache(maxsize=64)
def _says_nothing_else(text: Text, line: int, words: frozenset[str]) -> bool:
    """Whether the text of the kernel there, and of what it reaches, is plain: the same for all specialisations."""
    functions = text.reached(line)
    known = (BUILTIN | {one.name for one in text.functions}) - text.bound
    return bool(functions) and all(_is_plain(node, known, words) for one in functions for node in _inside(one))


def _is_itself(name: str, said: str) -> bool:
    """Whether a name in the kernel (see `meant`) stands for a constant, or for the function of that name."""
    path = name.partition(" in ")[0]
    function = AT_LINE.fullmatch(said)
    if function:
        return function[1] == path
    return "." not in path and not said.startswith(OTHERS) and not FLOAT8.search(said)


def _inside(function: ast.FunctionDef) -> Iterable[ast.AST]:
    """All nodes of the body: decorators and annotations are not compiled."""
    return (node for statement in function.body for node in ast.walk(statement))


def _is_plain(node: ast.AST, known: frozenset[str], words: frozenset[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in words
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            named = node.func.id in known
        else:
            few = len(node.args) <= MOST_LISTED or (isinstance(node.func, ast.Attribute) and node.func.attr in LONGER)
            named = few and not any(isinstance(one, ast.Starred) for one in node.args)
        return named and not any(word.arg is None or word.arg in SPECIAL for word in node.keywords)
    return not (isinstance(node, ast.Constant) and isinstance(node.value, str) and FLOAT8.search(node.value))
