"""Graded code that looks around: what can it see, reach, change? The isolation's tests run it in a worker."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time

import torch


def attempt(action):
    """ "allowed", or the name of what was raised."""
    try:
        action()
    except BaseException as error:
        return type(error).__name__
    return "allowed"


def read(*paths):
    return [attempt(lambda path=path: open(path, "rb").read(1)) for path in paths]


def listed(*paths):
    return [attempt(lambda path=path: os.listdir(path)) for path in paths]


def imported(name):
    __import__(name)
    return 1


def write(*paths):
    return [attempt(lambda path=path: open(path, "w")) for path in paths]


def change(path):
    """What else can be done to a file, without opening it."""
    return [
        attempt(lambda: os.chmod(path, 0o777)),
        attempt(lambda: os.chown(path, os.getuid(), os.getgid())),
        attempt(lambda: os.utime(path)),
        attempt(lambda: os.truncate(path, 0)),
        attempt(lambda: os.open(path, os.O_RDONLY | os.O_TRUNC)),
        attempt(lambda: os.rename(path, f"{path}.moved")),
        attempt(lambda: os.unlink(path)),
        attempt(lambda: os.link(path, f"{path}.link")),
        attempt(lambda: os.symlink(path, f"{path}.symlink")),
        attempt(lambda: os.setxattr(path, "user.x", b"1")),
    ]


def network(port, unix):
    def tcp():
        with socket.create_connection(("127.0.0.1", port), 2):
            pass

    def udp():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"x", ("127.0.0.1", port))

    def local():
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(unix)

    def datagram_to():
        one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.sendto(b"x", unix)

    def listening():
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))

    return [attempt(one) for one in (tcp, udp, local, datagram_to, listening)]


def signals(*pids):
    """To these processes, to the parent, to all there are."""
    return [attempt(lambda pid=pid: os.kill(pid, 0)) for pid in (*pids, os.getppid(), -1)]


def memory_of_others(*pids):
    return [attempt(lambda pid=pid: open(f"/proc/{pid}/mem", "rb")) for pid in (*pids, os.getppid())]


def trace_parent():
    import ctypes

    return ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)


def calls():
    """System calls that have no place here, by ctypes: each is refused (-1) or unknown."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    tried = {
        "unshare": lambda: libc.unshare(0x10000000),
        "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "chroot": lambda: libc.chroot(b"/"),
        "io_uring_setup": lambda: libc.syscall(425, 1, None),
        "bpf": lambda: libc.syscall(321, 0, None, 0),
        "userfaultfd": lambda: libc.syscall(323, 0),
        "keyctl": lambda: libc.syscall(250, 0, 0, 0),
        "memfd_create": lambda: libc.syscall(319, b"x", 0),
        "shmget": lambda: libc.shmget(0, 4096, 0o1600),
        "setuid": lambda: libc.setuid(54321),
    }
    return {name: call() for name, call in tried.items() if call() != -1}


def processes():
    return [attempt(os.fork), attempt(lambda: os.posix_spawnp("true", ["true"], {}))]


def threads():
    seen = []
    one = threading.Thread(target=lambda: seen.append(1))
    one.start()
    one.join()
    return seen


def environment():
    with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
        return sorted(os.environ), file.read().decode(errors="replace")
    return sorted(os.environ), ""


def first_words():
    """What the memory holds of the command line, as far as /proc shows it."""
    with contextlib.suppress(OSError), open("/proc/self/cmdline", "rb") as file:
        return file.read().decode(errors="replace") + " ".join(sys.argv + sys.orig_argv[1:])
    return " ".join(sys.argv + sys.orig_argv[1:])


def visible_processes():
    with contextlib.suppress(OSError):
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return []


def crowd():
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()


def hoard_fast():
    kept = []
    while True:
        kept.append(torch.ones(1 << 26))


def persist(folder):
    return attempt(lambda: open(os.path.join(folder, "left"), "w").write("x"))


def stop_oneself():
    os.kill(os.getpid(), signal.SIGSTOP)


def double(x):
    return x + x


def convert(x):
    return x.half().float().bfloat16().double().half() @ x.half().T
