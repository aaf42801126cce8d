"""Text of others for a screen or a log: what would steer a terminal, or pass for a line of its own, is spelled out.

Clients that publish, call or refuse choose text that people read here. Control characters (C0 and C1, DEL), the
separators of lines and paragraphs, and what turns the direction of writing become escapes as in Python (`\\x1b`).
"""

import re
from functools import lru_cache

_UNSAFE = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_of_a_line = re.compile(f"[{_UNSAFE}\n]")
_of_lines = re.compile(f"[{_UNSAFE}]")


def visible(text: str) -> str:
    """As one line. Tabs stay."""
    return _of_a_line.sub(_spelled, text)


def visible_lines(text: str) -> str:
    """The same of text that may have several lines."""
    return _of_lines.sub(_spelled, text)


def visible_json(text: str) -> str:
    """The same of JSON, in escapes that JSON has: a parser gets what was there before."""
    return _of_lines.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelled(found: re.Match[str]) -> str:
    return _spelling(found[0])


@lru_cache(maxsize=1024)
def _spelling(character: str) -> str:
    return character.encode("unicode_escape").decode()
