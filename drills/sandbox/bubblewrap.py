"""The command line of bubblewrap that a zygote starts in, and whether bubblewrap works on this machine.

Inside, there is nothing but what is named here: no network, no other process, no file of the repository beyond the
machinery's own, nothing to write to but a small /tmp in memory. All that runs inside ends with the zygote.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from drills.sandbox import environment, visible

PROGRAM = "bwrap"
TMP_BYTES = 512 << 20
PROBE_SECONDS = 20.0

NAMESPACES = (
    "user namespaces are refused here: allow them (Ubuntu: an AppArmor profile for bwrap; a container: "
    "--security-opt seccomp=unconfined, or --privileged)"
)
ADVICE = (
    ("mount proc", "in a container, start it with --security-opt systempaths=unconfined"),
    ("RTM_NEWADDR", NAMESPACES),
    ("amespace", NAMESPACES),
    ("uid map", NAMESPACES),
    ("Operation not permitted", NAMESPACES),
)


def command(arguments: list[str]) -> list[str]:
    """These arguments, run inside."""
    options = ["--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session", "--cap-drop", "ALL", "--chdir", "/"]
    # Before what is bound: the repository, or Python, may lie in /tmp.
    options += ["--size", str(TMP_BYTES), "--perms", "0700", "--tmpfs", "/tmp"]
    for name in visible.SYSTEM:
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
    for inside, outside in sorted(_readable().items()):
        options += ["--ro-bind-try", outside, inside]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for device in visible.gpu_devices():
        options += ["--dev-bind-try", device, device]
    for folder in visible.HARDWARE if not visible.gpu_devices() else ["/sys"]:
        if folder.startswith("/sys"):
            options += ["--ro-bind-try", folder, folder]
    for writable in ("/dev", "/"):
        options += ["--remount-ro", writable]
    options += ["--clearenv"]
    for name, text in {**environment.kept(os.environ), "PYTHONPATH": str(visible.ROOT)}.items():
        options += ["--setenv", name, text]
    return [PROGRAM, *options, "--setenv", "TMPDIR", "/tmp", "--setenv", "HOME", "/tmp", "--", *arguments]


def _readable() -> dict[str, str]:
    """Paths inside → paths outside. Python is found by the name it was started with, also through links."""
    paths = {one: one for one in (*visible.code(), *visible.SETTINGS, *visible.machinery())}
    named = (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable))
    linked = {one: os.path.realpath(one) for one in named if os.path.realpath(one) != one and not _covered(one, paths)}
    return {**paths, **linked}


def _covered(path: str, paths: dict[str, str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in paths)


def missing() -> tuple[str, str]:
    """Why bubblewrap cannot be used here, and what to do; two empty strings if it can. Starts Python inside it."""
    if sys.platform != "linux" or shutil.which(PROGRAM) is None:
        return "bubblewrap is not installed", "install it (Debian, Ubuntu: apt-get install bubblewrap)"
    test = f"import os; os.listdir('/proc/self/task'); assert not os.path.exists({str(visible.ROOT / 'solutions')!r})"
    try:
        done = subprocess.run(
            command([sys.executable, "-S", "-c", test]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            env=environment.kept(os.environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}", "run `bwrap --ro-bind / / true` to see why"
    if done.returncode == 0:
        return "", ""
    said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    advice = next((advice for words, advice in ADVICE if words in said), "run `bwrap --ro-bind / / true` to see why")
    return f"bubblewrap does not work here ({said.removeprefix('bwrap: ')})", advice
