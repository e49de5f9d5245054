"""A process that finds out whether CUDA works here, so that the parent never has to initialise it."""

from __future__ import annotations

import socket
from typing import Any


def serve(sock: socket.socket, config: dict[str, Any]) -> None:
    """Answer b"cuda" if a tensor can be made on a CUDA device, else b"none"."""
    try:
        import torch

        torch.zeros(1, device="cuda").item()
        sock.sendall(b"cuda")
    except Exception:
        sock.sendall(b"none")
