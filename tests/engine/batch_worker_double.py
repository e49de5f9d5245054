"""Stands for a batch's worker in tests: speaks its protocol, and does what the submission's name says."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path


def main():
    sock = socket.socket(fileno=int(sys.argv[1]))
    lines = sock.makefile("r")

    def say(**what):
        sock.sendall(json.dumps(what).encode() + b"\n")

    out = Path(json.loads(lines.readline())["out"])
    say(ready=True)
    seed = json.loads(lines.readline())["seed"]
    for line in lines:
        name = json.loads(line)["grade"]
        tries = out / "secret" / "logs" / f"{name}.tries"
        tries.open("a").write("x")
        first = len(tries.read_text()) == 1
        if name.startswith("dies") or (name.startswith("stumbles") and first):
            os._exit(9)
        if name.startswith("babbles"):
            sock.sendall(b"no json\n")
        if name.startswith("hangs"):
            time.sleep(600)
        if name.startswith("haunts"):
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            (out / "secret" / "logs" / "ghost").write_text(str(child.pid))
            time.sleep(600)
        while name.startswith("works"):
            say(beat=True)
            time.sleep(0.05)
        if name.startswith("full"):
            say(unwritable="No space left on device")
            time.sleep(600)
        error = name.startswith("breaks")
        say(done={"id": name, "standing": "passed", "error": error, "causes": [], "seed": seed}, memory=1)


if __name__ == "__main__":
    main()
