"""What to do about an exception that the learner's code raised. Text in, a sentence out; "" for one that is not known.

The message is Python's, torch's or Triton's own; which of the learner's functions raised it is not known here.
"""

from __future__ import annotations

import re

LAUNCH = "compare the launch with the kernel's parameters, one by one."
ONE_NUMBER = "A tuple stands where one number belongs: pass x.stride(0), x.shape[0] and so on, one by one."
INDEXED = "A block cannot be indexed by number or slice: load what is needed, or pick with tl.where and tl.sum."
DTYPE = "Triton's functions need the dtype: tl.zeros([BLOCK], tl.float32), tl.full([BLOCK], 0.0, tl.float32)."
DEVICE = "Allocate where the inputs are: device=x.device. There need not be a GPU."
NO_GPU = "Inputs are on the CPU here, where kernels run in an interpreter: a GPU is not to be asked for."
ASKS = f"{NO_GPU} Its properties are to be had only if torch.cuda.is_available()."
FILES = "Graded code can write no files, and torch.compile and torch.library need some: use the plain function."

ADVICE = (
    (
        "NotInterpreted",
        "",
        "It may well be right: nothing here can tell. Write it with tl's functions: tl.exp2, tl.log2, tl.fma …",
    ),
    ("NotImplementedError", "", "The stub's raise is still here: take it out, and return an answer from every branch."),
    ("ValueError", "power of 2", "Sizes of a block are powers of two: round up with triton.next_power_of_2, and mask."),
    (
        "ValueError",
        "tl.constexpr",
        "A block's size must be known when the kernel is compiled: a tl.constexpr parameter, not a size such as N.",
    ),
    (
        "ValueError",
        "incompatible dimensions",
        "Shapes that do not go together: x[:, None] and y[None, :] make a table.",
    ),
    ("ValueError", "unsupported tensor index", INDEXED),
    (
        "ValueError",
        "Value argument cannot be block type",
        "A block cannot be stored at one address: add offsets to the pointer, or reduce it with tl.sum or tl.max.",
    ),
    (
        "ValueError",
        "end argument must be greater than the start",
        "A block has one element at least: triton.next_power_of_2(0) is 0, so round up max(N, 1).",
    ),
    (
        "ValueError",
        "Mask argument cannot be block type",
        "The address is one, the mask a block: it needs one condition.",
    ),
    (
        "ValueError",
        "Unsupported ptr type",
        "That is no address: the pointer comes first, plus an offset; in tl.store the value comes after it.",
    ),
    (
        "ValueError",
        "range() arg 3 must not be zero",
        "The loop's step is 0: triton.next_power_of_2(0) is 0, so round up max(N, 1).",
    ),
    ("ValueError", "out of bounds for a tensor of", "The block has fewer axes than that: axis counts from 0."),
    ("AttributeError", "has no attribute 'log1p'", "Triton has no such function: write tl.log(1 + x)."),
    ("AttributeError", "'triton.language' has no attribute 'inf'", 'Triton has no tl.inf: write float("inf").'),
    (
        "AttributeError",
        "'NoneType' object has no attribute",
        "Something here is None: start it as a number or as tl.zeros, or pass it to the kernel.",
    ),
    ("AttributeError", "'tuple' object has no attribute", ONE_NUMBER),
    ("AttributeError", "'torch.dtype' object", "Inside a kernel dtypes are Triton's: tl.float32, not torch.float32."),
    (
        "TypeError",
        "must be torch.dtype, not dtype",
        "Outside a kernel dtypes are torch's: torch.float32, not tl.float32.",
    ),
    ("TypeError", "of type <class 'tuple'> to tensor", ONE_NUMBER),
    ("TypeError", "of type <class 'str'> to tensor", 'A text is no number: write float("-inf").'),
    ("TypeError", "unexpected keyword argument 'dim'", "What torch calls dim is axis here: tl.sum(x, axis=0)."),
    ("TypeError", "arange() missing", "It takes both ends: tl.arange(0, BLOCK)."),
    ("TypeError", "program_id() missing", "It takes the axis of the grid: tl.program_id(0)."),
    ("TypeError", "positional argument: 'dtype'", DTYPE),
    (
        "TypeError",
        "'function' object is not subscriptable",
        "Is @triton.jit missing, in the line above the kernel's def?",
    ),
    ("TypeError", "missing a required argument", f"The launch lacks an argument: {LAUNCH}"),
    ("TypeError", "multiple values for argument", f"The launch has an argument too many, or one twice: {LAUNCH}"),
    ("TypeError", "too many positional arguments", f"The launch has an argument too many: {LAUNCH}"),
    ("KeyError", "was specified but unrecognised", f"The kernel has no parameter of that name: {LAUNCH}"),
    (
        "TypeError",
        "argument of type: builtin_function_or_method",
        "A method stands where its result belongs: write the parentheses too, as in x.stride(0).",
    ),
    (
        "TypeError",
        "failed to specialize argument of type",
        "A kernel takes tensors and numbers: no list, no NumPy array.",
    ),
    ("RuntimeError", "needs the grader's --debug", "Add --debug to the command below, or take the breakpoint out."),
    ("EOFError", "", "Nobody is there to type while it is graded: write the value here, or use --debug."),
    (
        "RuntimeError",
        "outside of the scope of a kernel",
        "A kernel is launched with a grid, kernel[(M,)](...): without one, only another kernel can call it.",
    ),
    (
        "AssertionError",
        "must have equal ranks",
        "tl.dot multiplies two tables, [M, K] by [K, N]. One row by each row of a table is tl.sum(q[None, :] * k, 1).",
    ),
    (
        "AssertionError",
        "equal reduction dimensions",
        "tl.dot multiplies [M, K] by [K, N]: turn the second one with tl.trans, if it is stored row by row.",
    ),
    (
        "AssertionError",
        "operands must be same dtype",
        "tl.dot takes two blocks of one dtype: cast one to the other's, p.to(v.dtype). Its sums are float32 anyway.",
    ),
    ("RuntimeError", "0 active drivers", ASKS),
    ("FileNotFoundError", "No usable temporary directory", FILES),
    ("AssertionError", "not compiled with CUDA", DEVICE),
    ("RuntimeError", "no NVIDIA driver", DEVICE),
    ("RuntimeError", "No CUDA GPUs are available", DEVICE),
    ("ModuleNotFoundError", "", "The file is graded alone: it can import Python's own modules, torch and triton."),
    (
        "RecursionError",
        "",
        "A function calls itself without end, at once or through another: was tl's function of that name meant? If "
        "not, write a loop: a GPU kernel has no recursion.",
    ),
    (
        "UnboundLocalError",
        "",
        "It has no value yet: it gets one further down, or in an if or a loop not entered. Give it a first one before.",
    ),
)
"""Type of an exception, a part of its message, and what to do."""

OF_TRITON = {
    "arange", "atomic_add", "cast", "cdiv", "constexpr", "cumsum", "device_print", "dot", "exp", "exp2", "expand_dims",
    "fma", "full", "load", "log", "log2", "maximum", "minimum", "num_programs", "program_id", "rsqrt", "sigmoid",
    "sqrt", "static_range", "store", "trans", "where", "zeros",
}  # fmt: skip
"""Names that are often written without their tl."""

LEFT_OUT = "A ... is left: put in what it stands for. Hints leave out what is to be found."
SHAPE = "A shape is a tuple, also of one size: tl.zeros((BLOCK,), tl.float32). One number needs none: 0.0 will do."

HOST = {"math", "np", "numpy", "torch"}


def advice(type_name: str, message: str, within: bool, source: str = "") -> str:
    """within: a line of the learner's own raised it, `source`; else the call from outside did."""
    if type_name == "TypeError" and "positional argument" in message and not within:
        return "The signature is part of the contract: reset shows the stub's again."
    if type_name == "NameError":
        return _of_name(message)
    if "ellipsis" in message.lower():
        return LEFT_OUT
    if "object is not iterable" in message and re.search(r"\btl\.(zeros|full)\(", source):
        return SHAPE
    found = next((advice for kind, part, advice in ADVICE if kind == type_name and part in message), "")
    if found == DEVICE and "torch.cuda.get_" in source:
        return ASKS
    if type_name == "AssertionError" and not found and re.search(r"\.is_cuda\b|\.device\b", source):
        return f"{NO_GPU} Leave the check out."
    return found


def _of_name(message: str) -> str:
    """Of a name that Python does not know."""
    found = re.search(r"name '(\w+)' is not defined", message)
    name = found[1] if found else "that"
    if name in OF_TRITON:
        return f"It is Triton's: write tl.{name}."
    if name in HOST:
        return f"{name} is not imported, and no kernel can use it: there it is tl.exp, tl.maximum, float('-inf')."
    if name in ("tl", "triton"):
        return "An import of the stub is gone: import triton, import triton.language as tl."
    return (
        f"Nothing is called {name} there: a typing error? A kernel sees its parameters, tl, and what the file marks "
        "with @triton.jit or tl.constexpr."
    )
