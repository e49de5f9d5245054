"""A class's submissions of the tiny lesson, honest and not, and a batch that grades them."""

from __future__ import annotations

import io
from pathlib import Path

import tiny_lesson

from drills.batch.engine import Batch, Wishes
from drills.batch.place import Place
from drills.batch.seed import Seed
from drills.batch.settings import Settings
from drills.report import outputs
from drills.report.console import open_console

SECRET = Seed(123456789012345678901234567890, "salt")
SQUARED = ("2 * tl.load(x_ptr + i, mask=i < N)", "tl.load(x_ptr + i, mask=i < N) * tl.load(x_ptr + i, mask=i < N)")
OUTSIDE = ("mask=i < N), mask=i < N)\n    # END SOLUTION\n\n\ndef double", ")))\n    # END SOLUTION\n\n\ndef double")
CALLED = "    y = torch.empty_like(x)\n"

LEAKS = {
    "printer": "    print('inputs', read(x)); print(x)\n    return torch.zeros_like(x)\n",
    "raiser": "    raise ValueError(f'inputs {read(x)}')\n",
    "namer": "    raise type(f'E{read(x)}', (Exception,), {})()\n",
    "returner": "    return [read(x)] * 3\n",
    "echo": "    return x.clone()\n",
    "counter": "    y = torch.zeros(1024)\n"
    "    double_kernel[(1,)](torch.zeros(1024), y, abs(int(read(x)[0] * 1e6)) % 1000, BLOCK=1024)\n"
    "    return x.clone()\n",
    "constant": "    y = torch.empty_like(x)\n"
    "    hidden_kernel[(1,)](x, y, len(x), VALUE=read(x)[0], NAMED=str(read(x))[:500], BLOCK=64)\n    return y\n",
    "compiler": "    y = torch.empty_like(x)\n"
    "    told_kernel[(1,)](y, TEXT=str(read(x))[:500])\n"
    "    telling_kernel[(1,)](x, y)\n"
    "    return x.clone()\n",
    "keeper": "    import glob, os\n"
    "    for place in ('/tmp', '/dev/shm', '/var/tmp', os.environ.get('TMPDIR', '/tmp'), os.getcwd()):\n"
    "        try:\n"
    "            with open(place + '/drills-kept', 'a') as file:\n"
    "                file.write(str(read(x)))\n"
    "        except OSError:\n"
    "            pass\n"
    "        try:\n"
    "            print(open(place + '/drills-kept').read())\n"
    "        except OSError:\n"
    "            pass\n"
    "    raise ValueError('kept')\n",
}
"""Name → a body of `double` that gives its inputs away."""

HIDDEN_KERNEL = """

def read(x):
    import ctypes

    return list((ctypes.c_float * len(x)).from_address(x.data_ptr()))


@triton.jit
def hidden_kernel(x_ptr, y_ptr, N, VALUE: tl.constexpr, NAMED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, VALUE + tl.load(x_ptr + i, mask=i < N), mask=i < N)


class Box:
    text = ""


@triton.constexpr_function
def remember(text):
    Box.text = text
    return 1.0


@triton.constexpr_function
def tell():
    raise ValueError(f"inputs {Box.text}")


@triton.jit
def told_kernel(y_ptr, TEXT: tl.constexpr):
    tl.store(y_ptr, remember(TEXT))


@triton.jit
def telling_kernel(x_ptr, y_ptr):
    if tl.load(x_ptr) > 1e30:
        tl.store(y_ptr, tell())
"""


def leaking(body: str) -> str:
    """The solution with another body of `double`."""
    head, _, rest = tiny_lesson.SOLUTION.partition('"""y[N] = 2 * x[N], float32."""\n')
    tail = rest[rest.index("\n\n@triton.jit\ndef negate_kernel") :]
    return f'{head}"""Doubles."""\n{body}{HIDDEN_KERNEL}{tail}'


def write(folder: Path, **texts: str) -> Path:
    """One folder a submission, by name, with the lesson's file in it."""
    for name, text in texts.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{tiny_lesson.STEM}.py").write_text(text)
    return folder


def changed(*changes: tuple[str, str]) -> str:
    """The solution with these replacements."""
    text = tiny_lesson.SOLUTION
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def settings(root: Path, isolation: str = "process", **how) -> Settings:
    """How the tiny lesson under `root` is graded."""
    how = {"timeout": 10.0, **how}
    return Settings({tiny_lesson.STEM: ("double", "negate_in_place")}, isolation, root=str(root), **how)


def grade(folder: Path, out: Path, how: Settings, **wishes) -> tuple[int, Place, str]:
    """Runs a batch; its exit code, where it wrote, and what it said."""
    said = io.StringIO()
    place = Place(out)
    wishes = {"jobs": 1, "shown": "out", "seed": SECRET, **wishes}
    try:
        code = Batch(folder, place, how, Wishes(**wishes), open_console(file=said)).run(outputs.Options())
    finally:
        place.release()
    return code, place, said.getvalue()
