"""Plots as SVG that is part of the page: its text is text, and its colours are the page's, by day and by night.

matplotlib draws; no global state of it is used, and no window is opened. Colours are drawn as placeholders, which stand
for the variables of the page's style sheet afterwards.
"""

import io
import re
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, Final, TypeAlias

import matplotlib as mpl
from matplotlib import rcsetup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

Curve: TypeAlias = Sequence[float | None]
Panels: TypeAlias = Mapping[str, Mapping[str, Curve]]
"""Panel → line → its values."""
Band: TypeAlias = Sequence[Sequence[float] | None]
Bands: TypeAlias = Mapping[str, Band]
"""Line → an interval for each of its values."""

INK, SOFT, LINE, SURFACE = "#010101", "#020202", "#030303", "#040404"
ACCENT, SECOND, THIRD, GOOD, WARN, BAD = "#050505", "#060606", "#070707", "#080808", "#090909", "#0a0a0a"
_VARIABLES: Final = {
    INK: "ink",
    SOFT: "soft",
    LINE: "line",
    SURFACE: "surface",
    ACCENT: "accent",
    SECOND: "second",
    THIRD: "third",
    GOOD: "good",
    WARN: "warn",
    BAD: "bad",
}
SERIES = (ACCENT, THIRD, SECOND, GOOD, BAD, WARN)
_PANEL_INCHES = (4.4, 3.0)
WIDE_INCHES = (9.6, 2.7)
NARROW_INCHES = (4.6, 2.7)
_BAR_INCHES = 0.34
_LABEL_LETTERS = 44
_MARKERS = "osv^Dx+*"
REM_PER_INCH = 7.2
HIDDEN = 30.0
"""Where the largest value is this many times the median, a straight axis hides the others."""
PAPER = "paper"
"""A line whose name ends so is what a paper says: dashed with hollow points, below ours where they agree."""
_OF_A_PAPER: Final = {
    "linestyle": "--",
    "linewidth": 1.2,
    "color": SOFT,
    "marker": "o",
    "markersize": 8,
    "markerfacecolor": SURFACE,
    "zorder": 1.8,
}
_STYLE: Final = {
    "svg.hashsalt": "cubecast",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    **dict.fromkeys(("text.color", "axes.titlecolor"), INK),
    **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), SOFT),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), LINE),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.7,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "legend.labelcolor": SOFT,
    "axes.prop_cycle": rcsetup.cycler(color=SERIES),
}


def lines(
    x: Sequence[float],
    panels: Panels,
    x_label: str,
    *,
    doubling: bool = False,
    bands: Mapping[str, Bands] | None = None,
) -> list[str]:
    """A picture per panel; a value None leaves a gap. `doubling` puts powers of two at equal distances.

    `bands`, by panel and line, are intervals: drawn as an area about the line.
    """
    known = bands or {}
    return [_lines(x, title, curves, x_label, doubling, known.get(title, {})) for title, curves in panels.items()]


def is_doubling(x: Sequence[float]) -> bool:
    """Whether places are as far apart as powers of two are, on average."""
    return len(x) > 2 and x[0] > 0 and x[-1] / x[0] >= 2 ** (len(x) - 1)


def _lines(
    x: Sequence[float], title: str, curves: Mapping[str, Curve], x_label: str, doubling: bool, bands: Bands
) -> str:
    with mpl.rc_context(_STYLE):
        figure, axes = blank(_PANEL_INCHES)
        every: list[float] = []
        for k, (name, values) in enumerate(curves.items()):
            known = [(place, value) for place, value in zip(x, values, strict=True) if value is not None]
            every += [value for _, value in known]
            look = _OF_A_PAPER if name.endswith(PAPER) else {"marker": _MARKERS[k % len(_MARKERS)], "markersize": 4}
            (line,) = axes.plot(*zip(*known, strict=True), label=PAPER if name.endswith(PAPER) else name, **look)
            _band(axes, x, bands.get(name, ()), line.get_color())
        axes.set(title=title, xlabel=x_label)
        if all(place == int(place) for place in x):
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        if hides(every):
            axes.set_yscale("log")
        else:
            axes.set_ylim(min(0, axes.get_ylim()[0]), None)
        if doubling:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
        _legend(axes, len(curves))
        return svg(figure)


def _band(axes: Axes, x: Sequence[float], between: Band, color: Any) -> None:
    known = [(place, *pair) for place, pair in zip(x, between, strict=False) if pair is not None]
    if known:
        places, low, high = zip(*known, strict=True)
        axes.fill_between(places, low, high, color=color, alpha=0.18, linewidth=0)


def shares_below(title: str, curves: Mapping[str, Sequence[tuple[float, float]]], x_label: str) -> str:
    """A cumulative distribution: line → (value, share of values up to it)."""
    with mpl.rc_context(_STYLE):
        figure, axes = blank(_PANEL_INCHES)
        values = [value for steps in curves.values() for value, _ in steps]
        logarithmic = hides(values)
        floor = min((value for value in values if value > 0), default=1.0)
        for name, steps in curves.items():
            places = [max(value, floor) if logarithmic else value for value, _ in steps]
            shares = [100 * share for _, share in steps]
            axes.plot(places, shares, label=name, drawstyle="steps-post")
            if len(curves) == 1:
                axes.fill_between(places, shares, step="post", alpha=0.1, linewidth=0)
        axes.set(title=title, xlabel=x_label, ylabel="% of values up to", ylim=(0, 102))
        if logarithmic:
            axes.set_xscale("log")
        _legend(axes, len(curves))
        return svg(figure)


def histogram(title: str, counts: Sequence[tuple[float, float, int]], x_label: str, *, logarithmic: bool) -> str:
    """Bars of (from, to, how many)."""
    with mpl.rc_context(_STYLE):
        figure, axes = blank(_PANEL_INCHES)
        widths = [high - low for low, high, _ in counts]
        heights = [count for _, _, count in counts]
        axes.bar([low for low, _, _ in counts], heights, widths, align="edge", color=ACCENT, alpha=0.75, linewidth=0)
        axes.set(title=title, xlabel=x_label, ylabel="values")
        if logarithmic:
            axes.set_xscale("log")
        axes.grid(axis="x", visible=False)
        return svg(figure)


def bars(
    labels: Sequence[str],
    series: Mapping[str, Curve],
    x_label: str,
    intervals: Mapping[str, Sequence[Sequence[float] | None]] | None = None,
) -> str:
    """Horizontal bars, one group per label from the top, one bar per series; intervals as lines across their ends."""
    with mpl.rc_context(_STYLE):
        height = max(1.6, _BAR_INCHES * len(labels) * len(series) * 0.6 + 0.9)
        figure, axes = blank((9, height))
        thick = 0.8 / len(series)
        for k, (name, values) in enumerate(series.items()):
            places = [row + (k - (len(series) - 1) / 2) * thick for row in range(len(labels))]
            known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
            axes.barh([place for place, _ in known], [value for _, value in known], thick, label=name)
            for place, between in zip(places, (intervals or {}).get(name, ()), strict=False):
                if between is not None:
                    axes.plot(between, (place, place), color=INK, linewidth=1.2)
        axes.set_yticks(range(len(labels)), [fill(label, _LABEL_LETTERS) for label in labels], fontsize="small")
        axes.set_ylim(len(labels) - 0.45, -0.55)  # from the top, and no empty rows
        axes.set_xlabel(x_label)
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper left", ncols=len(series))  # nowhere inside is sure to be free
        return svg(figure)


def hides(values: Sequence[float]) -> bool:
    """Whether a straight axis would push most of these positive values to its end."""
    positive = sorted(value for value in values if value > 0)
    return len(positive) > 4 and positive[-1] > HIDDEN * positive[len(positive) // 4]


def blank(inches: tuple[float, float]) -> tuple[Figure, Any]:
    figure = Figure(inches, layout="constrained")
    return figure, figure.subplots()


def _legend(axes: Axes, lines: int) -> None:
    if lines > 1:
        named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))  # the paper's lines once
        axes.legend(list(named.values()), list(named), loc="best")


def styled() -> Any:
    """The style every picture is drawn and written in."""
    return mpl.rc_context(_STYLE)


def svg(figure: Figure) -> str:
    """The same figure gives the same text: neither a date nor random ids are in it."""
    picture = io.StringIO()
    figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = picture.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)  # inside HTML they say nothing, and look like addresses
    size = f' style="max-width: {REM_PER_INCH * figure.get_figwidth():.0f}rem"'  # as drawn, or smaller
    text = re.sub(r' width="[\d.]+pt"', size, text, count=1)
    text = re.sub(r' height="[\d.]+pt"', "", text, count=1)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)
    for placeholder, name in _VARIABLES.items():
        text = text.replace(placeholder, f"var(--{name})")
    return text
