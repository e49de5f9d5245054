"""What an entry of a folder is, in words. Follows no link and opens nothing."""

from __future__ import annotations

import os
import stat

LINK = "a link, which is not followed"
KINDS = (
    (stat.S_ISLNK, LINK),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def kind(entry: os.DirEntry) -> str:
    """What an entry of a folder is, links not followed: "file", "folder", or what else, as the end of a sentence."""
    try:
        return kind_of(entry.stat(follow_symlinks=False).st_mode)
    except OSError as error:
        return f"cannot be looked at: {error.strerror or error}"


def kind_of(mode: int) -> str:
    """ "file", "folder", or what else it is."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return next((text for holds, text in KINDS if holds(mode)), "neither a file nor a folder")
