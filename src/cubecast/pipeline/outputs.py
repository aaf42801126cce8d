"""Where results go: never over something that is already there."""

from pathlib import Path

from cubecast.errors import BadInput


def require_new(directory: Path) -> None:
    """Asked before a long computation, not after it."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadInput(f"{directory} exists and is not an empty directory; name another one for the results")
