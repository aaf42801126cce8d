"""What a report consists of: sections of text, tables and pictures. How they look is `page.html`'s business."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from cubecast.errors import BadInput
from cubecast.net import web

PAGE = Path(__file__).with_name("page.html")
STYLE = Path(web.__file__).parent / "static" / "style"
VACUOUS = "VALID, vacuous"
MARKED = ("VALID", VACUOUS, "VIOLATED", "UNKNOWN", "REFUSED", "reproduced", "explained", "differs")
"""Words the page gives a colour."""
LONGEST_NAME = 30
"""Of a name that is kept on one line."""


@dataclass(frozen=True)
class Grid:
    """A table; numbers are formatted and aligned by the page."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False
    """Shown as its caption until the reader opens it."""
    anchor: str = ""
    """What links on the page call it."""
    stacked: bool = False
    """On a phone each row is a paragraph of its own, its values behind their headings; otherwise the table scrolls."""
    minor: Sequence[str] = ()
    """Headings of the columns that a phone leaves out."""
    kind: str = field(default="grid", init=False)


@dataclass(frozen=True)
class Picture:
    """One drawing, or several small ones side by side."""

    caption: str
    drawings: Sequence[str]
    """SVG, made by `plots`."""
    text: str = ""
    wide: Sequence[str] = ()
    """Below them, as wide as the page; on a phone they are scrolled instead of shrunk."""
    anchor: str = ""
    narrow: Sequence[str] = ()
    """What a phone shows instead of the wide ones."""
    kind: str = field(default="picture", init=False)


@dataclass(frozen=True)
class Tile:
    label: str
    value: str
    hint: str = ""
    mood: str = ""
    """good, warn or bad."""


Part: TypeAlias = Grid | Picture


@dataclass(frozen=True)
class Section:
    title: str
    text: Sequence[str] = ()
    parts: Sequence[Part] = ()
    tiles: Sequence[Tile] = ()


@dataclass(frozen=True)
class Link:
    """A cell that leads to another place or page."""

    text: str
    target: str


@dataclass(frozen=True)
class Noted:
    """A cell with something smaller below its value."""

    value: Any
    note: str


class Measured(str):
    """A number that is text already, with its unit: aligned as numbers are."""

    __slots__ = ()


def require_drawing() -> None:
    """What only reports need is an extra of the package."""
    for name in ("matplotlib", "jinja2"):
        if find_spec(name) is None:
            raise BadInput(f"a report needs {name}, missing here: pip install 'cubecast[report]'")


def page(title: str, sections: Iterable[Section], origin: str = "", index: str = "") -> str:
    """One HTML page that needs nothing from outside itself, in the look of a node's.

    `origin`: how it was made; `index`: the page that leads here.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = cell
    environment.tests["is_number"] = is_number
    environment.tests["is_whole"] = is_whole
    environment.filters["value"] = _value
    return environment.from_string(PAGE.read_text()).render(
        title=title,
        sections=list(sections),
        marked=MARKED,
        origin=origin,
        index=index,
        theme=(STYLE / "theme.css").read_text(),
        icon=re.sub(r' xmlns="[^"]*"', "", (STYLE / "icon.svg").read_text()),
    )


def _value(shown: Any) -> Any:
    """What a cell shows first."""
    return shown.value if isinstance(shown, Noted) else shown


def write_page(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def duration(value: float, unit: str) -> Measured:
    """A time as people say it: seconds, milliseconds or microseconds by its size; simulated time as it is."""
    if unit != "s":
        return Measured(f"{cell(float(value))} {unit}")
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if abs(value) >= scale:
            return Measured(
                f"{value / scale:,.3g} {name}" if abs(value) < 1000 * scale else f"{value / scale:,.0f} {name}"
            )
    return Measured(f"{value * 1e6:,.3g} µs" if value else "0 s")


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def is_number(value: Any) -> bool:
    return (
        value is None or isinstance(value, Measured) or (isinstance(value, int | float) and not isinstance(value, bool))
    )


def is_whole(value: Any) -> bool:
    """A name that would be torn where it has a hyphen."""
    text = getattr(value, "text", value)
    return isinstance(text, str) and len(text) <= LONGEST_NAME and " " not in text
