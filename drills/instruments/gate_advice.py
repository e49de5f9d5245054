"""One sentence of advice for what the interpreter runs and Triton's compiler refuses.

Text in, a sentence out: no triton, no torch, and it never runs what it reads. An error that is not known gets no
advice rather than a guess.

>>> advise("unsupported AST node type: Break", "Break")
"The interpreter runs Python, a GPU kernel cannot leave a loop early: compute the loop's bound before it."
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from drills.instruments.gate_phrases import ERRORS, FUNCTION, MODULE, NODES, PYTHON_ONLY, SPOKEN


def tidy(error: str) -> str:
    """Triton's message as a sentence: "NameError('w is not defined')" becomes "w is not defined"; explanations go.

    Of a function that calls itself Triton says its own name of it only: it looks for what is not compiled yet.
    """
    text = " ".join(error.split())
    wrapped = re.fullmatch(r"\w*(?:Error|Exception|StopIteration)\((['\"])(.*)\1,?\)", text)
    if wrapped:
        text = wrapped[2].replace("\\'", "'").replace('\\"', '"')
    if recursive := re.match(rf"'?{MODULE}\.(?:[\w<>]+\.)*(\w+?)__", text):
        return f"{recursive[1]} calls itself"
    text = re.sub(r" from within @jit'ed function\..*", " from within a kernel", text)
    text = re.sub(r" Please make sure that.*| ?\(`_semantic` argument must be.*", "", text)
    text = re.sub(r" object at 0x[0-9a-f]+", "", text)
    return text.strip().rstrip("!.")


def is_empty(error: str) -> bool:
    """Whether a message says nothing, such as "AssertionError()"."""
    return not error or re.fullmatch(r"\w+\(\)|\w*(Error|Exception|StopIteration)", error) is not None


def said(error: str, node: str) -> str:
    """What the screen calls the error: Triton's tidy message, or the syntax that it stumbled over."""
    text = tidy(error)
    if is_empty(text):
        return f"Triton does not compile this {SPOKEN.get(node, node or 'kernel')}"
    return text


def advise(error: str, node: str = "", kernel: ast.AST | None = None, functions: Collection[str] = ()) -> str:
    """One sentence for the learner, "" for an error that is not known.

    error: Triton's message. node: the kind of syntax that it names. kernel: the function's syntax tree, which tells a
    variable that is assigned in one branch from one that is not assigned at all. functions: names of those in the file.
    """
    text = tidy(error)
    if (outside := re.search(r"Cannot access global variable (\w+)", text)) and outside[1] in functions:
        return FUNCTION.replace("{0}", outside[1])
    if name := re.search(r"^(?:name )?'?(\w+)'? is not defined", text):
        return advise_name(name[1], kernel)
    if syntax := re.search(r"unsupported AST node type: (\w+)", text):
        return NODES.get(syntax[1], "The interpreter runs Python, Triton compiles a small part of it only.")
    if node == "With" or node == "Subscript" and "Did you forget to add @triton.jit" in text:
        return NODES[node]
    for pattern, advice in ERRORS:
        if found := re.search(pattern, text):
            for number, group in enumerate(found.groups()):
                advice = advice.replace(f"{{{number}}}", (group or "it").replace("'", ""))
            return advice
    if is_empty(text):
        if node in ("arg", "FunctionDef"):
            return NODES["FunctionDef"]
        return "Assign to one name a line." if node == "Assign" else ""
    return NODES.get(node, "") if node in ("ListComp", "DictComp", "SetComp", "GeneratorExp") else ""


def advise_name(name: str, kernel: ast.AST | None) -> str:
    """Advice for a name that the compiler does not know."""
    if kernel is not None and name in assigned(kernel):
        return (
            f"{name} gets its value inside an if or a loop only, and a compiled kernel must have it on every way:"
            " give it a first value before."
        )
    if isinstance(kernel, ast.FunctionDef) and name in {one.arg for one in kernel.args.kwonlyargs}:
        return f"Triton compiles no parameters behind a *: take the * out, and {name} can still be given by name."
    if name in PYTHON_ONLY:
        return f"A kernel has no Python {name}(): use {PYTHON_ONLY[name]}."
    return f"Nothing in the kernel or in the file is called {name}: a typing error, or an argument to pass in?"


def assigned(kernel: ast.AST) -> set[str]:
    """Names that a function assigns anywhere in its body."""
    return {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
