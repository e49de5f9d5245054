"""What the instruments cost: the same kernels in the plain interpreter and in ours, in two processes by turns.

    python -m drills.bench.overhead

Prints the milliseconds of processor time of each (the least of the rounds) and their ratio; exits with 1 if a ratio is
above the limit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

LIMIT = 1.3
ROUNDS = 15


def main() -> int:
    """Measure and print."""
    best = measure(ROUNDS)
    worst = 0.0
    print(f"{'kernel':10} {'plain':>9} {'recorded':>9} {'ratio':>6}")
    for name, (plain, ours) in best.items():
        worst = max(worst, ours / plain)
        print(f"{name:10} {plain * 1e3:6.2f} ms {ours * 1e3:6.2f} ms {ours / plain:5.2f}x")
    print(f"limit {LIMIT}x: {'kept' if worst <= LIMIT else 'exceeded'}")
    return 0 if worst <= LIMIT else 1


def measure(rounds: int) -> dict[str, tuple[float, float]]:
    """Kernel → least seconds of one call, plain and recorded."""
    sides = [_start("plain"), _start("recorded")]
    best: dict[str, list[float]] = {}
    try:
        for _ in range(rounds):
            for at, side in enumerate(sides):
                side.stdin.write("\n")
                side.stdin.flush()
                for part in side.stdout.readline().split():
                    name, seconds = part.split("=")
                    least = best.setdefault(name, [float("inf")] * 2)
                    least[at] = min(least[at], float(seconds))
    finally:
        for side in sides:
            side.stdin.close()
            side.wait(timeout=30)
    return {name: (plain, ours) for name, (plain, ours) in best.items()}


def _start(side: str) -> subprocess.Popen:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "drills.bench.overhead", side]
    return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def serve(side: str) -> None:
    """In the child: for each line read, time every kernel once and print name=seconds."""
    import torch

    from drills import instruments
    from drills.instruments.notes import CallOptions

    torch.set_num_threads(1)
    if side == "recorded":
        instruments.install()
    from drills.bench.overhead_kernels import CASES

    for _ in sys.stdin:
        times = []
        for name, case in CASES.items():
            begun = time.process_time()
            if side == "recorded":
                with instruments.recording(CallOptions(), {}) as record:
                    case()
                record.notes()
            else:
                case()
            times.append(f"{name}={time.process_time() - begun}")
        print(*times, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        sys.exit(main())
