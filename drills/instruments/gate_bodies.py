"""A graded file's functions as walks through a kernel (see `gate_walk`) need them: what is the same for all of them."""

from __future__ import annotations

import ast
import functools
from collections import Counter

from drills.instruments.gate_text import Text, names

TL = ("import triton.language as tl", "from triton import language as tl")
TOOK = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While, ast.Pass)
UNCLEAR = (ast.Lambda, ast.NamedExpr, ast.Starred, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class File:
    """What stands at the top of a file. functions: all. names: what has a meaning there. helpers: jitted ones, by name.

    says_tl: whether tl is Triton's language and nothing else.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
        others = [one for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        bound = [name for one in others for node in ast.walk(one) for name in names(node)]
        bound += [one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        self.names, times = frozenset(bound), Counter(bound)
        self.sure = not any(isinstance(node, ast.Global) for node in ast.walk(tree))
        self.helpers = {one.name: one for one in self.functions if times[one.name] == 1 and is_jitted(one)}
        self.says_tl = times["tl"] == 1 and any(ast.unparse(one) in TL for one in tree.body)


def is_jitted(function: ast.FunctionDef) -> bool:
    """Whether triton.jit is its only decorator."""
    return [ast.unparse(one) for one in function.decorator_list] == ["triton.jit"]


class Body:
    """A function, as far as it is the same for every call. stored: the names that it gives. once: those given once.

    clear: whether it holds no statement that is unknown here. doubtful: names that are known outside it, too.
    """

    def __init__(self, function: ast.FunctionDef, file: File) -> None:
        nodes = [one for one in ast.walk(function) if one is not function]
        args = function.args
        self.statements = function.body
        self.parameters = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        stores = [one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
        self.stored = frozenset(stores)
        self.once = frozenset(name for name, times in Counter(stores).items() if times == 1)
        strange = any(
            isinstance(one, UNCLEAR) or (isinstance(one, ast.stmt) and not isinstance(one, TOOK)) for one in nodes
        )
        self.clear = not (strange or args.vararg or args.kwarg)
        self.doubtful = self.stored & file.names


@functools.lru_cache(maxsize=8)
def file_of(text: Text) -> File:
    """The top of this file."""
    return File(text.tree)


@functools.lru_cache(maxsize=128)
def body_of(function: ast.FunctionDef, file: File) -> Body:
    """This function of the file."""
    return Body(function, file)


@functools.lru_cache(maxsize=1024)
def mentioned(node: ast.AST) -> frozenset[str]:
    """The names in a piece of text."""
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
