"""TOML files that people write, and get wrong."""

import tomllib
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput


def read_toml(path: Path) -> dict[str, Any]:
    """BadInput when it cannot be read or is no TOML."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from None
