"""The sentences of the compile gate: which construct of Python a GPU kernel lacks, and what to write instead.

Data only. Each function and statement has a test in which Triton itself refuses it, and so have the errors that a
kernel can be made to raise here.
"""

from __future__ import annotations

MODULE = "graded_by_the_gate"
"""What a graded file is called where it is compiled. Triton puts it into its own names of functions."""

PYTHON_ONLY = {
    "sum": "tl.sum",
    "abs": "tl.abs",
    "round": "tl.floor(x + 0.5)",
    "pow": "tl.exp2 and tl.log2",
    "bool": "a comparison such as x != 0",
    "any": "tl.max on the condition as an integer",
    "all": "tl.min on the condition as an integer",
    "zip": "one loop over an index",
    "enumerate": "range",
    "reversed": "range with a negative step",
    "sorted": "tl.sort",
    "map": "one expression on a whole block",
    "tuple": "names of their own",
    "dict": "names of their own",
    "set": "names of their own",
    "str": "a tl.constexpr",
    "breakpoint": "--debug to stop there, and take it out afterwards",
}
"""Python functions that a kernel does not know → what to write instead."""

NODES = {
    "Break": "The interpreter runs Python, a GPU kernel cannot leave a loop early: compute the loop's bound before it.",
    "Continue": "The interpreter runs Python, a GPU kernel cannot skip to the next turn of a loop: put the rest of the"
    " body under an if, or mask it.",
    "Lambda": "A kernel cannot make a function while it runs: write the expression where it is used, or a second"
    " @triton.jit function.",
    "Dict": "A kernel has no dictionaries: give each value a name of its own.",
    "DictComp": "A kernel has no comprehensions: use one block, or a loop over range or tl.static_range.",
    "SetComp": "A kernel has no comprehensions: use one block, or a loop over range or tl.static_range.",
    "GeneratorExp": "A kernel has no comprehensions: use one block, or a loop over range or tl.static_range.",
    "ListComp": "A kernel has no lists that are built up: load one block with tl.arange, or loop over range.",
    "Try": "A kernel cannot catch exceptions, and nothing in it raises any: mask what must not happen.",
    "Raise": "A kernel cannot raise: check in the wrapper, or use tl.static_assert on constants.",
    "NamedExpr": "A kernel cannot assign inside an expression: assign on a line of its own.",
    "FunctionDef": "A function cannot be defined inside a kernel: move it out and mark it @triton.jit.",
    "Global": "A kernel cannot change a Python variable: pass what it needs as an argument and store its result.",
    "With": "A kernel has no with blocks: open nothing in it.",
    "Import": "A kernel cannot import: import at the top of the file, and use triton.language only.",
    "ImportFrom": "A kernel cannot import: import at the top of the file, and use triton.language only.",
    "Set": "A kernel has no sets: give each value a name of its own.",
    "Subscript": "A block cannot be indexed by number or slice: load what is needed, or pick with tl.where and tl.sum.",
    "Delete": "A kernel cannot delete a name: leave it.",
}
"""Kinds of Python syntax that Triton does not compile."""

ERRORS = (
    (
        r"^\w+ calls itself$|maximum recursion depth exceeded",
        "The interpreter runs Python, a GPU kernel has no recursion, neither at once nor through another function:"
        " write a loop.",
    ),
    (
        r"only support tensor pointer usages inside a `scf::ForOp`",
        "A while loop cannot carry a block pointer: advance it in a for loop over range, or make it anew in each turn.",
    ),
    (r"num_warps must be a power of 2", "num_warps must be 1, 2, 4, 8, 16 or 32."),
    (
        r"no attribute '?(append|extend|pop|insert)\b|'(append|extend|pop|insert)' is not in list",
        "A kernel has no lists that grow: use one block with tl.arange, or keep running values in a loop.",
    ),
    (
        r"K >= (\d+)",
        "tl.dot needs at least {0} along K (it pads M and N itself): make the block {0} wide, with zeros past the end.",
    ),
    (
        r"[Ll]oop-carried variable (\w+) has initial type <(\[.*?\]), (\w+)> but is re-assigned to <\2, (\w+)>",
        "{0} starts as {2} and becomes {3}: a compiled loop cannot change a type. Start it in {3}, or cast with .to()"
        " inside. A sum over many values belongs in tl.float32.",
    ),
    (
        r"[Ll]oop-carried variable (\w+) has initial type <\[(.*?)\], \w+> but is re-assigned to <\[(.*?)\], \w+>",
        "{0} starts with the shape [{1}] and becomes [{2}]: a compiled loop cannot change a shape. Which is meant? Look"
        " at the axis of each tl.sum, and at [:, None] against [None, :].",
    ),
    (
        r"[Ll]oop-carried variable (\w+) has initial type <\[|re-assigned to <\[",
        "The shape changes inside the loop: start with a block of the final shape, as tl.zeros([...], tl.float32) or"
        " tl.full makes one.",
    ),
    (
        r"[Ll]oop-carried variable (\w+) has initial type u?int\d+.* re-assigned to (fp\d+|bf16)",
        "{0} starts as an integer and turns into a float: a compiled loop cannot change a type. Start it as 0.0.",
    ),
    (
        r"[Ll]oop-carried variable (\w+) has initial type",
        "A compiled loop cannot change the type of {0}: start it with the type that the loop gives it, or cast with"
        " .to() inside.",
    ),
    (
        r"Loop carried variable (\w+) is not a triton value",
        "{0} is a Python object before the loop and a GPU value inside: start it as a number or as tl.zeros.",
    ),
    (
        r"(?:initial value for `|[Mm]ismatched type for )(\w+)(?:` is of type| between then block)",
        "The two ways through the if give {0} different types: give it one type on both, as in 0.0 for 0, or use"
        " tl.where.",
    ),
    (
        r"Ternary expression with dynamic condition",
        "Both sides of x if c else y need one type: write 0.0 for 0, or use tl.where.",
    ),
    (
        r"arange's range must be a power of 2|Shape element \d+ must be a power of 2|must be a power of 2",
        "A block's sizes are powers of two: pass triton.next_power_of_2(D) as a tl.constexpr and mask with offs < D.",
    ),
    (
        r"arange's arguments must be of type tl.constexpr|must have type `constexpr|arguments must be constexpr",
        "A block's size must be known when the kernel is compiled: declare that parameter as tl.constexpr.",
    ),
    (
        r"exceeds triton maximum tensor numel",
        "A block may hold 2^20 elements: take a smaller tile, and loop over the rest.",
    ),
    (
        r"Cannot have `return` statements inside",
        "A kernel cannot return from inside a loop: compute the loop's bound before it, or mask the rest.",
    ),
    (
        r"failed to legalize unresolved materialization from \(\) to \('?tensor<",
        "A function that returns inside an if, or is noinline, stays a function, and Triton cannot hand it blocks: let"
        " it return once, at its end.",
    ),
    (
        r"Boolean value of Tensor with more than one value",
        "An if decides for the whole program, not for each element: use tl.where, or a mask.",
    ),
    (
        r"simultaneous multiple comparison|[Cc]hained",
        "A kernel cannot chain comparisons: write (a <= i) & (i < b).",
    ),
    (
        r"Cannot access global variable (\w+)",
        "A kernel sees no Python variable from outside: pass {0} as an argument, or write {0} = tl.constexpr(...).",
    ),
    (
        r"f-string",
        'A kernel has no f-strings of GPU values: use tl.device_print("x", x), or run with --debug and print there.',
    ),
    (
        r"is not string",
        'print in a kernel needs a text first: tl.device_print("x", x). With --debug it prints in the interpreter.',
    ),
    (
        r"must be real number, not tensor|Did you forget to add @triton.jit|must be Tensor, not tensor|ufunc",
        "math, numpy and torch work on Python numbers, not inside a kernel: use tl.exp, tl.maximum and the like.",
    ),
    (
        r"Unsupported function referenced",
        "A kernel can call triton.language and @triton.jit functions only: use tl.exp, tl.maximum and the like.",
    ),
    (
        r"(float|int)\(\) argument must be",
        "{0}() works on Python numbers: cast a GPU value with .to(tl.float32) or .to(tl.int32).",
    ),
    (
        r"incompatible dimensions at index|[Cc]annot make_shape_compatible|Cannot broadcast|shape mismatch",
        "The two blocks have different sizes along an axis: line them up with [:, None] and [None, :].",
    ),
    (
        r"'int' object has no attribute 'to'",
        "A constant, a tl.constexpr and an argument that is 1 are plain integers when a kernel is compiled: cast what"
        " they meet, as in tl.program_id(0).to(tl.int64).",
    ),
    (
        r"Expected pointer argument to have shape",
        "The block to be stored is larger than the block of addresses: look at the axis of each tl.sum before it, and"
        " at [:, None] against [None, :].",
    ),
    (
        r"cannot be block type if pointer argument is not a block",
        "A block is stored through one pointer: add offsets to it, out + tl.arange(0, BLOCK).",
    ),
    (r"__setitem__", "A block's elements cannot be assigned one by one: build the new block with tl.where."),
    (
        r"unsupported tensor index",
        NODES["Subscript"],
    ),
    (
        r"loop bounds and step must all be ints|slice indices must be int",
        "A loop's bounds are whole numbers: / gives a float, use // or tl.cdiv.",
    ),
    (
        r"'List' object has no attribute|'Tuple' object has no attribute 'func'|Only `range` and `static_range`|"
        r"'\w+' object has no attribute 'func'",
        "A kernel loops over range or tl.static_range only.",
    ),
    (
        r"'tensor' object cannot be interpreted as an integer",
        "A number that is known only when the kernel runs can bound a plain for loop over range, nothing else: pass it"
        " as a tl.constexpr.",
    ),
    (r"__rpow__|__pow__", "A kernel has no ** for GPU values: use tl.exp2, or multiply."),
    (
        r"module 'triton.language' has no attribute",
        "This Triton has no such function: see triton.language for what there is (log1p(x) is tl.log(1 + x)).",
    ),
    (
        r"'tensor' object has no attribute '(mean|numpy|cpu|size|clone|detach|float|half|abs|pow|masked_fill|clamp)'",
        "A block is no torch tensor: use triton.language, as in tl.sum(x, axis=0) / N.",
    ),
    (r"invalid axis", "The block has fewer axes than that: axis counts from 0."),
    (
        r"^shared memory:",
        "Take smaller blocks, fewer num_stages, or keep less in float32: a block's tiles for tl.dot must fit in shared"
        " memory together.",
    ),
    (r"^threads:", "A block holds 1024 threads, which is num_warps=32: take fewer warps."),
    (r"num_ctas > 1 requires", "num_ctas > 1 is for sm_90 only: leave it out, so that the kernel runs on sm_80 too."),
    (r"specified but unrecognised", "The launch passes a keyword that the kernel does not declare: add or remove it."),
    (
        r"[Ii]nconsistent return types|Return type mismatch",
        "All returns of a @triton.jit function must give one type: return at the end, with tl.where for the choice.",
    ),
    (
        r"processing an MLIR pass pipeline",
        "Triton's compiler gives up on this kernel and does not say why: it need not be wrong. Write what is unusual in"
        " it plainly: loads of three axes that are reshaped, other orders of axes.",
    ),
    (r"did not finish", "The blocks are probably far too large, or a loop is unrolled: take smaller ones."),
    (r"fp8\w* not supported|type fp8\w+ not", "sm_80 has no such 8-bit float: load it as another type."),
)
"""Pattern of the error → advice; groups of the pattern fill {0}, {1} and so on. The first that matches counts."""

FUNCTION = "A kernel can call triton.language and @triton.jit functions only: put @triton.jit above {0}."
"""Advice for a plain function of the file that a kernel calls."""

TF32 = 'tl.dot on float32 rounds its inputs to TF32 (10 bits) on a GPU, about 1e-3 off: pass input_precision="ieee".'

SUM_TF32 = (
    "Triton turns tl.sum(x[:, :, None] * y[None, :, :], 1) of float32 into a tl.dot rounded to TF32, about "
    '1e-3 off on a GPU: call tl.dot with input_precision="ieee" yourself.'
)

IMPORT = "The file must load without the interpreter too: run nothing at its top level that needs it, or a GPU."

SPOKEN = {
    "Assign": "assignment",
    "arg": "function defined inside a kernel",
    "FunctionDef": "function defined inside a kernel",
    "Call": "call",
    "For": "loop",
    "If": "if",
    "Compare": "comparison",
    "BinOp": "expression",
}
"""Kind of syntax → what it is called where Triton says nothing at all."""
