"""Which variables of the grader's environment the processes that run graded code may know: no token, no address."""

from __future__ import annotations

from collections.abc import Mapping

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "USER", "LOGNAME")
KEPT_PREFIXES = ("LC_", "PYTHON", "TRITON_", "CUDA_", "NVIDIA_", "TORCH_", "PYTORCH_", "OMP_", "MKL_", "OPENBLAS_")


def kept(variables: Mapping[str, str]) -> dict[str, str]:
    """What of an environment they may know."""
    return {name: text for name, text in variables.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)}
