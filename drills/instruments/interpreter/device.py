"""libdevice in the interpreter: the functions that numpy can compute, and a clear word for the others.

Compiled code calls NVIDIA's library; the plain interpreter returns None or raises from deep inside.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import interpreter as plain

from drills.instruments.interpreter.arithmetic import NotInterpreted, handle, wide

MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
NATIVE = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
    **{name: getattr(np, name) for name in ("fmod", "copysign", "ldexp", "hypot", "rint", "isnan", "isinf", "abs")},
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "nearbyint": np.rint,
    "fabs": np.abs,
    "pow": np.power,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "max": np.fmax,
    "min": np.fmin,
    "fma": lambda x, y, z: x * y + z,
    "fma_rn": lambda x, y, z: x * y + z,
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "rcp_rn": lambda x: 1 / x,
    "sqrt_rn": np.sqrt,
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "fast_tanhf": np.tanh,
    "fast_dividef": np.divide,
    "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(np.float32(10), x),
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_log10f": np.log10,
    "fast_powf": np.power,
    "isfinited": np.isfinite,
    "finitef": np.isfinite,
    "signbit": lambda x: np.signbit(x).astype(np.int32),
}

OF_FLAGS = {np.dtype(np.bool_): tl.int1, np.dtype(np.int32): tl.int32}
"""The type of a result that is no float: these functions are of floats, or of int32."""


def tell_target() -> None:
    """Have kernels that ask for their GPU be told of one, as they are where they are compiled."""
    info = sys.modules.get("triton.language.target_info")
    if info is not None:
        info.current_target = current_target


def current_target() -> Any:
    """A GPU of sm_80."""
    return GPUTarget("cuda", 80, 32)


current_target.__triton_builtin__ = True


def replacements(semantic: Any) -> Iterator[tuple[Any, str, Any, Any]]:
    """(module, name, the module's own function, ours) of every libdevice function."""
    for path in MODULES:
        try:
            module = importlib.import_module(path)
        except ImportError:
            continue
        for name, own in vars(module).items():
            if callable(own) and not name.startswith("_") and not inspect.isclass(own):
                yield module, name, own, _function(semantic, name)


def _function(semantic: Any, name: str) -> Any:
    operation = NATIVE.get(name)

    def function(*args: Any, **_: Any) -> Any:
        if operation is None:
            raise NotInterpreted(f"libdevice.{name}")
        tensors = [semantic.to_tensor(arg) for arg in args]
        for at, one in enumerate(tensors[1:], 1):
            tensors[0], tensors[at] = semantic.broadcast_impl_value(tensors[0], one)
        values = operation(*(wide(tensor.handle) for tensor in tensors))
        kind = OF_FLAGS.get(values.dtype, tensors[0].dtype)
        made = plain.TensorHandle(values, kind) if kind is tl.int1 else handle(values, kind)
        return tl.tensor(made, tensors[0].type.with_element_ty(kind))

    return function
