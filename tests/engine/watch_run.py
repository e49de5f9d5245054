"""Runs `grade.py watch` on a tiny lesson as a learner does: without a terminal, or on a pseudo-terminal with keys."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import tiny_lesson

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
STEM = tiny_lesson.STEM
SHORT = STEM.split("_")[0]


def build(root: Path) -> Path:
    """A repository with the tiny lesson and the real machinery, its answer not begun."""
    ignore = shutil.ignore_patterns("l[0-9]_*.py", "__pycache__")
    shutil.copytree(ROOT / "drills", root / "drills", ignore=ignore)
    shutil.copy(ROOT / "grade.py", root)
    entry = tiny_lesson.build(root)
    entry.mine.parent.mkdir(exist_ok=True)
    entry.mine.write_text(entry.stub)
    return root


class Watch:
    """A running `watch`. What it has printed is in `text`; `until` waits for more."""

    def __init__(self, root: Path, *words: str, terminal: bool = False) -> None:
        self.root, self.text = root, ""
        self.before: list | None = None
        self.there: int | None = None
        environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "grade.py", "watch", "--device", "cpu", *words]
        heard = f"import os, signal; signal.signal({signal.SIGHUP:d}, signal.SIG_DFL); "  # nohup had it ignored
        run = f"os.execv({sys.executable!r}, {command!r})"
        own = {"cwd": root, "env": environment}
        if terminal:
            self.end, there = pty.openpty()
            self.before = termios.tcgetattr(there)
            take = f"import fcntl, termios; fcntl.ioctl({there}, termios.TIOCSCTTY, 0); "
            self.process = subprocess.Popen(
                [sys.executable, "-c", heard + take + run],
                stdin=there,
                stdout=there,
                stderr=there,
                pass_fds=[there],
                start_new_session=True,
                **own,
            )
            self.there = there
        else:
            self.end, there = os.pipe()
            command = [sys.executable, "-c", heard + run]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=there, stderr=there, **own)
            os.close(there)

    @property
    def mine(self) -> Path:
        return self.root / "mine" / f"{STEM}.py"

    def until(self, *marks: str) -> str:
        """Waits until these words were printed, in this order; what was printed up to there is returned and dropped."""
        deadline, at, seen = time.monotonic() + PATIENCE, 0, ""
        for mark in marks:
            while (found := self.text.find(mark, at)) < 0:
                assert time.monotonic() < deadline, f"no {mark!r} in {self.text!r}"
                assert self.read(deadline), f"watch ended without {mark!r}: {self.text!r}"
            at = found + len(mark)
        seen, self.text = self.text[:at], self.text[at:]
        return seen

    def read(self, deadline: float) -> bool:
        """Takes in more; False at the end."""
        if not select.select([self.end], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return True
        try:
            data = os.read(self.end, 65536)
        except OSError:  # a pseudo-terminal whose other end is closed
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)

    def press(self, keys: str) -> None:
        """Types keys."""
        os.write(self.end, keys.encode())

    def save(self, *changes: tuple[str, str]) -> None:
        """Saves the solution with replacements, whole, as an editor does that writes by rename."""
        text = tiny_lesson.SOLUTION
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.write(text)

    def write(self, text: str) -> None:
        """Saves a text by rename."""
        other = self.mine.with_name(f".{self.mine.name}.swp")
        other.write_text(text)
        os.replace(other, self.mine)

    def family(self) -> list[int]:
        """The processes that belong to it."""
        from drills.sandbox import limits

        return limits.family(self.process.pid)

    def ended(self, family: list[int]) -> int:
        """Its exit code; fails if one of the family lives on, or if the terminal is not as it was."""
        if self.before is not None:
            self.process.wait(PATIENCE)
            assert termios.tcgetattr(self.there) == self.before
        if self.there is not None:
            os.close(self.there)
        while self.read(time.monotonic() + PATIENCE):
            pass
        code = self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while left := [pid for pid in family if alive(pid)]:
            assert time.monotonic() < deadline, f"still there: {left}"
            time.sleep(0.01)
        assert "Traceback" not in self.text
        return code

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ends it, whatever state it is in."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
        os.close(self.end)


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
