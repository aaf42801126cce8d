"""What a report consists of: sections of text, tables and pictures. How they look is `page.html`'s business."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from cubecast.errors import BadInput

PAGE = Path(__file__).with_name("page.html")
MARKED = ("VALID", "VIOLATED", "UNKNOWN", "reproduced", "explained", "differs")
"""Words the page gives a colour."""


@dataclass(frozen=True)
class Grid:
    """A table; numbers are formatted and aligned by the page."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False
    """Shown as its caption until somebody opens it."""
    kind: str = field(default="grid", init=False)


@dataclass(frozen=True)
class Picture:
    caption: str
    source: str
    """The picture itself, as a data: URL."""
    kind: str = field(default="picture", init=False)


Part: TypeAlias = Grid | Picture


@dataclass(frozen=True)
class Section:
    title: str
    text: Sequence[str] = ()
    parts: Sequence[Part] = ()


def require_drawing() -> None:
    """What only reports need is an extra of the package."""
    for name in ("matplotlib", "jinja2"):
        if find_spec(name) is None:
            raise BadInput(f"a report needs {name}, missing here: pip install 'cubecast[report]'")


def page(title: str, sections: Iterable[Section]) -> str:
    """One HTML page that needs nothing from outside itself."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = cell
    environment.tests["is_number"] = is_number
    return environment.from_string(PAGE.read_text()).render(title=title, sections=list(sections), marked=MARKED)


def write_page(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


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
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
