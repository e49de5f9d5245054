"""tl.map_elementwise: a scalar function, branches and all, called for one element after the other.

On a GPU the elements of a pack are neighbors in a thread; here they are neighbors in the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from drills.instruments.interpreter.arithmetic import numpy_type
from drills.instruments.interpreter.reduction import tensor


def mapped(semantic: Any, function: Any, inputs: tuple, pack: int) -> Any:
    """function(a, b …) of every element of the inputs, in one shape: a tensor, or a tuple where it returns several.

    With a pack it takes so many elements of each input, and returns as many of each result.
    """
    blocks = semantic.broadcast_tensors(*map(semantic.to_tensor, inputs))
    flat = [block.handle.data.reshape(-1) for block in blocks]
    single, kinds, results = False, [], []
    for first in range(0, flat[0].size, pack):
        elements = [
            tensor(np.asarray(array[at]), block.dtype)
            for array, block in zip(flat, blocks, strict=True)
            for at in range(first, first + pack)
        ]
        made = function(*elements)
        single = not isinstance(made, (tuple, tl.tuple))
        values = list(map(semantic.to_tensor, [made] if single else made))
        if not kinds:
            kinds = [value.dtype for value in values[::pack]]
            results = [np.empty(flat[0].size, numpy_type(kind)) for kind in kinds]
        for at, value in enumerate(values):
            value = semantic.cast(value, kinds[at // pack])
            results[at // pack][first + at % pack] = value.handle.data.item()
    shape = blocks[0].handle.data.shape if blocks[0].type.is_block() else ()
    kept = [tensor(result.reshape(shape), kind) for result, kind in zip(results, kinds, strict=True)]
    return kept[0] if single else tuple(kept)
