"""Whose pages may use a node: a browser says with `Origin` which page asks, and no page can make it lie.

Without the check any page somebody happens to visit could talk to a node on their machine or in their network.
"""

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from cubecast.errors import BadInput
from cubecast.escaping import visible

ANY = "*"


def split_origin(text: str) -> SplitResult:
    """Its parts; all of them empty for what has none."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def check_origin(text: str) -> str:
    """An origin as it is written in settings, in the form browsers send."""
    if text == ANY:
        return text
    parts = split_origin(text)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or text.rstrip("/") != f"{parts.scheme}://{parts.netloc}"
    ):
        raise BadInput(f"{text!r} is no origin; write for example https://example.org:8443, or * for all")
    return text.rstrip("/").lower()


class Origins:
    """The node's own pages always; others by name."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        self._others = frozenset(map(check_origin, others))

    def objection(self, origin: str | None, host: str) -> str | None:
        """Why a page of this origin may not; `host` is what the browser called this node. Programs send no origin."""
        if origin is None or ANY in self._others or origin.lower() in self._others:
            return None
        parts = split_origin(origin)
        if parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower():
            return None
        return (
            f"pages of {visible(origin[:200])} may not use this node; whoever runs it can allow them with --ws-origin"
        )
