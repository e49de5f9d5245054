"""Runs the cases of a module under TRITON_INTERPRET in one child process and hands back what they returned.

    python tests/engine/case_runner.py MODULE plain|ours

prints one JSON object: case → {"got": …} or {"raised": …}.
"""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).parent


def run(module: str, side: str) -> dict:
    """All cases of tests/engine/MODULE.py. side: "plain" leaves Triton's interpreter as it is."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, __file__, module, side]
    done = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{module} could not be run:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(module: str, side: str) -> None:
    """In the child."""
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    from drills import instruments

    if side == "ours":
        status = instruments.install()
        assert status.on, status.note
    outcomes = {}
    for name, case in importlib.import_module(module).CASES.items():
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                outcomes[name] = {"got": case()}
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                outcomes[name] = {"raised": type(error).__name__, "message": str(error), "at": f"{at.name}:{at.lineno}"}
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
