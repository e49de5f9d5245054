"""Graded code that does everything it should not. The sandbox's tests run it in a worker; nothing else may."""

import contextlib
import json
import os
import signal
import struct
import sys
import time

import torch

CALLS = 0


def count():
    global CALLS
    CALLS += 1
    return CALLS


def echo(*args):
    return args


def stop_here():
    breakpoint()


def nothing():
    pass


def change(x):
    x += 1


def leave(code):
    os._exit(code)


def die(name):
    os.kill(os.getpid(), getattr(signal, name))


def kill_the_zygote():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def read_wildly():
    import ctypes

    ctypes.string_at(1, 8)


def loop():
    while True:
        pass


def loop_in_steps():
    at = 0
    while at < 3:
        for _ in range(1000):
            step(at)


def step(at):
    for _ in range(50):
        time.sleep(0.001)


def sleep_long():
    print("tired")
    time.sleep(600)


def sleep_deaf():
    for number in range(1, 32):
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def flood():
    while True:
        print("again and again")


def flood_raw():
    while True:
        os.write(1, b"x" * 65536)


def say(text):
    print(text)
    print("to stderr", file=sys.stderr)


def say_much():
    print("y" * 200_000)


def hoard():
    kept = []
    while True:
        kept.append(torch.ones(1 << 22))


def breed():
    while True:
        if os.fork() == 0:
            time.sleep(600)


def bomb():
    while True:
        os.fork()


def haunt(file):
    """A grandchild in a session of its own that ignores what it can."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            sleep_deaf_after(file)
        os._exit(0)
    time.sleep(0.05)
    os._exit(0)


def haunt_and_answer(file):
    if os.fork() == 0:
        os.setsid()
        sleep_deaf_after(file)
    while not os.path.exists(file):
        time.sleep(0.001)
    return 1


def sleep_deaf_after(file):
    with open(file, "w") as out:
        out.write(str(os.getpid()))
    sleep_deaf()


def sockets():
    for entry in os.listdir("/proc/self/fd"):
        try:
            kind = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue
        if kind.startswith("socket:"):
            yield int(entry)


def write_noise():
    for number in sockets():
        os.write(number, os.urandom(4096))
    time.sleep(600)


def hang_up():
    for number in list(sockets()):
        os.close(number)
    time.sleep(600)


def promise_too_much():
    for number in sockets():
        os.write(number, struct.pack("<4sIQ", b"drl1", 10, 1 << 50))
    time.sleep(600)


def answer_for_itself(nonce):
    text = json.dumps({"head": {"nonce": nonce, "notes": {}}, "tree": None, "tensors": []}).encode()
    for number in sockets():
        os.write(number, struct.pack("<4sIQ", b"drl1", len(text), 0) + text + bytes(32))
    time.sleep(600)


def trickle():
    for number in sockets():
        os.write(number, struct.pack("<4sIQ", b"drl1", 1 << 20, 0))
        while True:
            os.write(number, b"{")
            time.sleep(0.01)


def too_large():
    return torch.zeros(1).expand(1 << 40)


def too_deep():
    tree = []
    for _ in range(100):
        tree = [tree]
    return tree


def write_file(path):
    with open(path, "wb") as out:
        while True:
            out.write(b"z" * (1 << 20))


def fail(x):
    return inner(x)


def inner(x):
    raise ValueError("bad \x1b[31mx\x1b[0m")


def mistype(what):
    block = torch.zeros(1)
    if what == "a name":
        return blok  # noqa: F821
    return torch.zeross(1) if what == "a function" else block.shap


def quit_politely():
    sys.exit(3)


def interrupt():
    raise KeyboardInterrupt


def recurse():
    return recurse()


class Nasty(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def fail_nastily():
    raise Nasty


def see():
    held = [name for name in sys.modules if name.startswith(("drills.lessons.l", "test_l"))]
    return held, sorted(os.environ), len(list(sockets()))
