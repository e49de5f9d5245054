"""A seccomp filter: system calls that graded code has no use for are refused with "operation not permitted".

It covers what a view of files does not: sockets, signals to others, tracing, namespaces, modes and owners of files,
memory that no limit counts, new processes. Knows x86-64 and 64-bit ARM; numbers from the kernel's tables.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass, field

LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
"""Instructions of the kernel's classic packet filter: ld, jeq, jge, jset, and, ret."""

ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000 | errno.EPERM
UNKNOWN = 0x00050000 | errno.ENOSYS
NUMBER_AT, ARCH_AT, ARGUMENTS_AT = 0, 4, 16
LAST_KNOWN = 462
"""mseal; what a newer kernel adds is unknown here, and is refused as an older kernel would."""

PR_SET_SECCOMP = 22
PR_SET_DUMPABLE = 4
MODE_FILTER = 2
CLONE_THREAD = 0x00010000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
LOCAL, STREAM, SEQUENCED = 1, 1, 5
CLOEXEC, NONBLOCK = 0x80000, 0x800

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000

NUMBERS = {
    # name: (x86-64, ARM; None where there is none)
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "truncate": (76, 45),
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272),
    "prlimit64": (302, 261), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None),
    "execve": (59, 221), "execveat": (322, 281), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "mknod": (133, None), "mknodat": (259, 33),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "acct": (163, 89), "reboot": (169, 142), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "iopl": (172, None), "ioperm": (173, None),
    "syslog": (103, 116), "vhangup": (153, 58), "lookup_dcookie": (212, 18),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "ioctl": (16, 29), "prctl": (157, 167), "sendmsg": (46, 211), "sendmmsg": (307, 269),
}  # fmt: skip

SPECIAL = {
    "open", "openat", "openat2", "socket", "bind", "listen", "socketpair", "kill", "tgkill", "prlimit64", "setpriority",
    "sched_setaffinity", "clone", "clone3", "fork", "vfork", "execve", "execveat", "memfd_create", "ioctl", "prctl",
    "sendmsg", "sendmmsg",
}  # fmt: skip
"""What is looked at more closely, or refused to some only; all others in NUMBERS are refused."""


@dataclass
class Filter:
    """A program for the kernel, put together rule by rule; what no rule refuses is allowed."""

    column: int
    code: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        """One instruction; yes and no: how many to skip after a comparison."""
        self.code.append((code, yes, no, value))

    def refuse(self, name: str, verdict: int = REFUSE) -> None:
        """The call, whatever its arguments."""
        number = NUMBERS[name][self.column]
        if number is not None:
            self.add(LOAD, NUMBER_AT)
            self.add(EQUAL, number, no=1)
            self.add(RETURN, verdict)

    def only(self, name: str, at: int, *values: int) -> None:
        """The call is allowed if the low half of argument `at` is one of `values`."""
        number = NUMBERS[name][self.column]
        if number is not None:
            count = len(values)
            self.add(LOAD, NUMBER_AT)
            self.add(EQUAL, number, no=count + 2)
            self.add(LOAD, ARGUMENTS_AT + 8 * at)
            for place, value in enumerate(values):
                self.add(EQUAL, value, yes=count - place)
            self.add(RETURN, REFUSE)

    def masked(self, name: str, at: int, mask: int, value: int, refuse_equal: bool) -> None:
        """Refuse the call if argument `at` masked equals `value`, or if it does not."""
        number = NUMBERS[name][self.column]
        if number is not None:
            self.add(LOAD, NUMBER_AT)
            self.add(EQUAL, number, no=4)
            self.add(LOAD, ARGUMENTS_AT + 8 * at)
            self.add(AND, mask)
            self.add(EQUAL, value, yes=0 if refuse_equal else 1, no=1 if refuse_equal else 0)
            self.add(RETURN, REFUSE)

    def packed(self) -> bytes:
        """As the kernel reads it."""
        return b"".join(struct.pack("=HBBI", *one) for one in self.code)


def known() -> bool:
    """Whether this processor's system calls are known here."""
    return platform.machine() in ARCHES


def build(own: int, processes: bool, listening: bool) -> bytes:
    """The program for the process `own`. processes: whether it may start others, and run programs in them.

    listening: whether it may wait for local connections, as CUDA does when it starts; it may never make any.
    """
    machine = platform.machine()
    rules = Filter(list(ARCHES).index(machine))
    rules.add(LOAD, ARCH_AT)
    rules.add(EQUAL, ARCHES[machine], yes=1)
    rules.add(RETURN, KILL)
    rules.add(LOAD, NUMBER_AT)
    if machine == "x86_64":
        rules.add(AT_LEAST, X32, no=1)
        rules.add(RETURN, KILL)
    rules.add(AT_LEAST, LAST_KNOWN + 1, no=1)
    rules.add(RETURN, UNKNOWN)
    for name in NUMBERS.keys() - SPECIAL:
        rules.refuse(name)
    for name in ("clone3", "openat2"):
        rules.refuse(name, UNKNOWN)  # their arguments lie in memory; the C library then takes the older call
    for name in ("kill", "tgkill"):
        rules.only(name, 0, own)
    for name in ("prlimit64", "sched_setaffinity"):
        rules.only(name, 0, 0, own)
    rules.only("setpriority", 1, 0, own)
    # Streams only: a datagram names its receiver, which a filter cannot see.
    streams = [kind | flags for kind in (STREAM, SEQUENCED) for flags in (0, CLOEXEC, NONBLOCK, CLOEXEC | NONBLOCK)]
    rules.only("socketpair", 1, *streams)
    if listening:
        rules.only("socket", 0, LOCAL)
        rules.only("socket", 1, *streams)
    else:
        for name in ("socket", "bind", "listen"):
            rules.refuse(name)
        for name in ("sendmsg", "sendmmsg"):  # they hand descriptors over, and with them files that nobody would count
            rules.refuse(name)
    truncating = os.O_TRUNC | os.O_ACCMODE
    rules.masked("open", 1, truncating, os.O_TRUNC, refuse_equal=True)
    rules.masked("openat", 2, truncating, os.O_TRUNC, refuse_equal=True)
    rules.masked("prctl", 0, 0xFFFFFFFF, PR_SET_DUMPABLE, refuse_equal=True)  # who is not, can't be asked what it holds
    for request in (TIOCSTI, TIOCLINUX):
        rules.masked("ioctl", 1, 0xFFFFFFFF, request, refuse_equal=True)
    if not processes:
        for name in ("fork", "vfork", "execve", "execveat", "memfd_create"):
            rules.refuse(name)
        rules.masked("clone", 0, CLONE_THREAD, CLONE_THREAD, refuse_equal=False)
    rules.add(RETURN, ALLOW)
    return rules.packed()


def restrict(processes: bool, listening: bool = False) -> None:
    """Put the filter on this process for good, and on what it starts. Needs `landlock.no_new_privileges` before."""
    program = ctypes.create_string_buffer(build(os.getpid(), processes, listening))
    count = (len(program) - 1) // 8
    header = struct.pack("@HxxxxxxP", count, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
