"""Runs `grade.py` as a learner does, in a small repository that has the real machinery."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import small_repository

ROOT = Path(__file__).resolve().parents[2]


def build(root: Path) -> Path:
    """A repository of small lessons under `root`, its stubs untouched."""
    small_repository.build(root)
    ignore = shutil.ignore_patterns("l*_*.py", "__pycache__")
    shutil.copytree(ROOT / "drills", root / "drills", dirs_exist_ok=True, ignore=ignore)
    shutil.copy(ROOT / "grade.py", root)
    for stem in small_repository.LESSONS:
        grade(root, f"reset {stem}")
    return root


def grade(root: Path, line: str, code: int = 0, **environment: str) -> str:
    """Runs `grade.py` with these words, expects this exit code, and returns output followed by errors."""
    env = {**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "grade.py", *line.split()]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr
