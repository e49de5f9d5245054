"""Runs the cases of a module under TRITON_INTERPRET in one child process and hands back what they returned.

    python tests/engine/case_runner.py plain|ours MODULE ...

prints one JSON object: module → case → {"got": …} or {"raised": …}.
"""

import contextlib
import functools
import importlib
import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).parent


OURS = ("interpreter_cases", "recorder_cases", "twin_cases")
"""Modules that run together under the instruments: one child, one import of torch."""


def run(module: str, side: str) -> dict:
    """All cases of tests/engine/MODULE.py. side: "plain" leaves Triton's interpreter as it is."""
    return _run(OURS if side == "ours" else (module,), side)[module]


@functools.cache
def _run(modules: tuple[str, ...], side: str) -> dict:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, __file__, side, *modules]
    done = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True, timeout=180)
    if done.returncode:
        raise AssertionError(f"{modules} could not be run:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(side: str, *modules: str) -> None:
    """In the child."""
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    from drills import instruments

    if side == "ours":
        status = instruments.install()
        assert status.on, status.note
    print(json.dumps({module: outcomes(importlib.import_module(module).CASES) for module in modules}))


def outcomes(cases: dict) -> dict:
    """Run every case, with its prints caught."""
    found = {}
    for name, case in cases.items():
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                found[name] = {"got": case()}
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                found[name] = {"raised": type(error).__name__, "message": str(error), "at": f"{at.name}:{at.lineno}"}
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
