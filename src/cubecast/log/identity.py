"""The name of a log: random, made with its files and kept beside them, so that a replaced directory is noticed.

Offsets count in one log only. A program that keeps them keeps this name too, and sees when another log answers.
"""

import os
import re
import secrets
from pathlib import Path

from cubecast.log.segments import sync_directory

IDENTITY = "log.id"
_name = re.compile(r"[0-9a-f]{32}\n")


def log_identity(directory: Path) -> str:
    """The one there is, or a new one, on the disk before anybody hears of it."""
    path = directory / IDENTITY
    text = path.read_text("ascii", "replace") if path.exists() else ""
    if not _name.fullmatch(text):  # new, older than this file, or torn: nobody's offsets count here
        text = f"{secrets.token_hex(16)}\n"
        draft = path.with_suffix(".id.new")
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(directory)
    return text.strip()
