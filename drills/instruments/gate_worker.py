"""The gate's own process: loads a graded file without the interpreter and compiles the kernels that it is asked to.

It runs graded code (the file's top level, and what a kernel computes while it is compiled), so nothing that it says is
more than a claim: the parent checks every answer. It must never be the process that holds a seed or judges.

One JSON object a line, both ways; each answer has a proof in front (see `own_words`), by a key that came with the first
question, before any graded code was loaded. A question and its answer:

    {"id": 7, "file": "mine/l4.py", "sha256": "…", "text": "import…", "arch": 90, "depth": 2, "seconds": 20,
     "spec": {"kernel": …}}
    {"id": 7, "ok": false, "kind": "compile_error", "line": 44, "node": "Break",
     "error": "unsupported AST node type: Break", "figures": null}

Two processes serve one socket. The inner one compiles; it may crash, hang, or be ended by what it compiles. The outer
one loads nothing: it waits, says how the inner one ended (with "id": null), ends it when the parent has gone, and
removes the folder that held temporary files. A compilation that runs past its seconds ends the inner process by
SIGALRM, which needs no help from Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drills.instruments import gate_folders, own_words
from drills.instruments.gate_answer import MAX_ERROR, answer, failed, ready

MAX_QUESTION = 16 << 20
NICE = 3
POLL_S = 0.02
GRACE_S = 0.3
"""Seconds that the inner process may take to end by itself once the parent has gone."""


def serve(sock: socket.socket, config: dict[str, Any] | None = None) -> None:
    """Answer questions until the parent closes its end. For a process of its own that has not loaded triton yet.

    config: the mark of its folder, and what it gives up before graded code.
    """
    config = config or {}
    gate_folders.sweep()
    folder = gate_folders.make(config.get("mark", ""))
    try:
        compiler = os.fork()
        if compiler == 0:
            try:
                compile_on_request(sock, folder, config.get("seal", lambda: None))
            finally:
                os._exit(0)
        status = await_end(compiler, sock)
        if status:
            said = Path(folder, "log").read_text(errors="replace")[-MAX_ERROR:]
            with contextlib.suppress(OSError):
                sock.sendall(b"\n" + json.dumps({"id": None, **obituary(status, said)}).encode() + b"\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def await_end(compiler: int, sock: socket.socket) -> int:
    """Wait for the inner process, and end it once the parent has closed its end. Returns its exit code or -signal."""
    parent = select.poll()
    parent.register(sock, select.POLLRDHUP)
    patience = GRACE_S
    while True:
        if patience == GRACE_S:
            gone = bool(parent.poll(POLL_S * 1000))
        else:
            time.sleep(POLL_S)
        pid, status = os.waitpid(compiler, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        patience -= POLL_S if gone else 0
        if patience <= 0:
            os.kill(compiler, signal.SIGKILL)


def obituary(status: int, said: str) -> dict[str, Any]:
    """The answer in place of one that will never come. status: exit code or -signal; said: the end of its stderr."""
    if status == -signal.SIGALRM:
        return failed("compile_timeout", "the compiler did not finish in time")
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
    lines = [line for line in said.splitlines() if "ERROR" in line or "error:" in line or "Assertion" in line]
    return failed("compile_died", f"the compiler ended with {how}" + (f": {lines[-1][:300]}" if lines else ""))


def compile_on_request(sock: socket.socket, folder: str, seal: Callable[[], None]) -> None:
    """The inner process: one answer a question, until the stream ends. seal: what it gives up before graded code."""
    log = prepare(folder)
    files: dict[str, Any] = {}
    key = b""
    with sock.makefile("rb") as questions:
        while line := questions.readline(MAX_QUESTION):
            question = own_words.parsed(line)
            key = key or bytes.fromhex(question.pop("key"))
            if not files:
                ready(files)
                seal()
            signal.setitimer(signal.ITIMER_REAL, float(question["seconds"]))
            said = answer(question, files, log)
            signal.setitimer(signal.ITIMER_REAL, 0)
            with contextlib.suppress(OSError):
                text = own_words.text({"id": question["id"], **said})
                sock.sendall(own_words.proof(key, text).hex().encode() + b" " + text + b"\n")


def prepare(folder: str) -> Any:
    """This process made fit: no interpreter, a folder to write to, quiet. Returns the log that its stderr goes to."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    sys.dont_write_bytecode = True
    tempfile.tempdir = folder
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ.update(TRITON_HOME=folder, TRITON_CACHE_DIR=str(Path(folder, "cache")), TMPDIR=folder)
    log = open(Path(folder, "log"), "a+", errors="replace")  # noqa: SIM115 - it is this process's stderr to its end
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    return log
