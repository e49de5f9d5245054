"""A graded file as the compile gate sees it: loaded without the interpreter, its kernels found by name and line.

Runs the graded code, so only the gate's own process may use it. Kernels at module level are taken as they are; one
that is nested in a function is built again from its source and the values that it had captured, because the function
around it is never called here.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import linecache
import sys
from types import CellType, FunctionType, ModuleType
from typing import Any

from drills.instruments.constants import MAX_DEPTH, closure_of, plain, tupled
from drills.instruments.gate_phrases import MODULE

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Unbuildable(Exception):
    """A launch that cannot be rebuilt here; the message says why, in words for the learner."""


class GradedFile:
    """One file of kernels, `path` with these bytes. Loading it raises whatever its top level raises."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.tree = ast.parse(data, path)
        lines = io.StringIO(importlib.util.decode_source(data)).readlines()  # no line ends at a form feed
        linecache.cache[path] = (len(data), None, lines, path)  # Triton asks for the source; the file may be hidden
        self.functions = [node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)]
        spec = importlib.util.spec_from_file_location(MODULE, path)
        if spec is None or spec.loader is None:
            raise Unbuildable("the file is no Python file")
        self.module: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = self.module
        exec(compile(data, path, "exec", dont_inherit=True), self.module.__dict__)

    def kernel(self, name: str, line: int, closure: dict[str, Any]) -> Any:
        """The JIT function called `name` whose def or first decorator is at `line`; Unbuildable if there is none."""
        from triton.runtime.jit import JITFunction

        found = unwrap(self.find(name, line, closure))
        if type(found) is not JITFunction:
            raise Unbuildable(f"{name} is not a @triton.jit kernel when the file is loaded without the interpreter")
        return found

    def find(self, name: str, line: int, closure: dict[str, Any]) -> Any:
        """The function object called `name`, wrapped as the file wraps it; Unbuildable if there is none."""
        named = [value for value in self.reachable() if self.is_called(value, name)]
        exact = [value for value in named if self.spans(value, line) and closure_of(value) == closure]
        if exact:
            return exact[0]
        at_line = [node for node in self.functions if node.name == name and first_line(node) <= line <= node.lineno]
        if at_line:
            return self.build(at_line[0], closure)  # nested, or another of that name took its place
        raise Unbuildable(f"no function {name} at line {line} of the file")

    def reachable(self) -> list[Any]:
        """Functions in the module's own names and in its classes, wrapped or plain."""
        values = list(vars(self.module).values())
        for value in tuple(values):
            if issubclass(type(value), type) and value.__module__ == MODULE:
                values += [getattr(held, "__func__", held) for held in vars(value).values()]
        return [value for value in values if plain(value) is not None]

    def is_called(self, value: Any, name: str) -> bool:
        """Whether the function inside `value` has that name."""
        function = plain(value)
        return function is not None and function.__name__ == name

    def spans(self, value: Any, line: int) -> bool:
        """Whether `line` lies between the first decorator and the def of the function inside `value`."""
        function = plain(value)
        last = self.def_line(function) if function is not None else None
        return last is not None and function.__code__.co_firstlineno <= line <= last

    def starts(self, kernel: Any) -> dict[str, int]:
        """Source text of a JIT function, as Triton's errors carry it → line of its def in this file."""
        values = [kernel, *self.reachable()]
        for function in filter(None, map(plain, values.copy())):
            values += [cell.cell_contents for cell in function.__closure__ or () if cell_is_set(cell)]
        found = {}
        for value in filter(None, map(unwrap, values)):
            line = self.def_line(value.fn)
            if line is not None and isinstance(getattr(value, "src", None), str):
                found[value.src] = line
        return found

    def def_line(self, function: FunctionType) -> int | None:
        """Line of the def whose code this is; None if it is of another file."""
        if function.__code__.co_filename != self.path:
            return None
        first = function.__code__.co_firstlineno
        return next((node.lineno for node in self.functions if first_line(node) == first), None)

    def build(self, node: ast.FunctionDef, closure: dict[str, Any]) -> Any:
        """The nested function of `node`, made inside a stand-in for the function around it."""
        values = {name: self.decode(value, keep=True) for name, value in closure.items()}
        holder = ast.FunctionDef(
            name="enclosing",
            args=ast.arguments(
                posonlyargs=[], args=[ast.arg(name) for name in values], kwonlyargs=[], kw_defaults=[], defaults=[]
            ),
            body=[node, ast.Return(ast.Name(node.name, ast.Load()))],
            decorator_list=[],
            type_params=[],
        )
        module = ast.fix_missing_locations(ast.Module([holder], []))
        names = dict(vars(self.module))
        exec(compile(module, self.path, "exec"), names)
        holder_function = FunctionType(names["enclosing"].__code__, vars(self.module))
        return holder_function(**values)

    def decode(self, value: Any, keep: bool = False) -> Any:
        """The value that `constants.encode` wrote. keep: a tl.constexpr stays one (as captured values must)."""
        import triton.language as tl

        if not isinstance(value, dict):
            return value
        if "float" in value:
            return float(value["float"])
        if "constexpr" in value:
            inner = self.decode(value["constexpr"])
            return tl.constexpr(inner) if keep else inner
        if "dtype" in value:
            return tl.str_to_ty(str(value["dtype"]), None)
        if "torch" in value:
            return getattr(sys.modules["torch"], str(value["torch"]))
        if "tuple" in value:
            return tupled((self.decode(item, keep) for item in value["tuple"]), value.get("fields"))
        if "module" in value and value["module"] in sys.modules:
            return sys.modules[value["module"]]
        if "function" in value:
            return self.find(value["function"], value["line"], value["closure"])
        raise Unbuildable(f"a kernel cannot use a Python object of type {value.get('other', 'unknown')}")


def unwrap(value: Any) -> Any:
    """The JIT function inside autotune, heuristics and the like; None if there is none."""
    for _ in range(MAX_DEPTH):
        inner = getattr(value, "fn", None)
        if isinstance(inner, FunctionType):
            return value
        value = inner
    return None


def cell_is_set(cell: CellType) -> bool:
    """Whether a captured variable has a value yet."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The first decorator's line, else the def's."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
