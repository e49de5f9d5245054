"""Ctrl-C ends a command in one line, wherever it falls."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drills import ctrl_c

ROOT = Path(__file__).resolve().parents[2]


class Dropped:
    """Its end raises what Python cannot pass on."""

    def __del__(self):
        raise KeyboardInterrupt


def test_an_interrupt_that_python_drops_comes_again(capsys):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), ctrl_c.interrupts():
        thing = Dropped()
        del thing
        time.sleep(30)
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is before


def test_afterwards_ctrl_c_is_what_it_was():
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with ctrl_c.interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, ""),
        ("def main():\n    from drills import real\n    return real.main(['stop'])", 130, "grade.py: stopped\n"),
    ],
)
def test_while_python_loads_it_is_silent_and_in_a_command_one_line(tmp_path, body, code, said):
    package = tmp_path / "drills"
    (package / "report").mkdir(parents=True)
    for name in ("commands", "ctrl_c", "errors", "leaving", "report/words", "report/console"):
        shutil.copy(ROOT / "drills" / f"{name}.py", package / f"{name}.py")
    shutil.copy(ROOT / "drills" / "cli.py", package / "real.py")
    stop = "import os, signal\ndef arguments(parser): pass\ndef run(*_): os.kill(os.getpid(), signal.SIGINT)\n"
    (package / "stop.py").write_text(stop)
    table = (package / "commands.py").read_text()
    table = table.replace("TABLE = (", 'TABLE = (\n    Command("stop", "drills.stop", "stops"),')
    (package / "commands.py").write_text(table)
    (package / "cli.py").write_text(f"import os, signal\n{body}\n")
    shutil.copy(ROOT / "grade.py", tmp_path)
    env = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "grade.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, said)
