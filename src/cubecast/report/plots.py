"""Plots as data: URLs that a page can hold. No global state of matplotlib is used, and no window is opened."""

import base64
import io
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, TypeAlias

import matplotlib as mpl
from matplotlib.figure import Figure

Curve: TypeAlias = Sequence[float | None]
Panels: TypeAlias = Mapping[str, Mapping[str, Curve]]
"""Panel → line → its values."""

_PANEL_INCHES = (4.2, 3.0)
_PANELS_BESIDE = 3
_BAR_INCHES = 0.34
_LABEL_LETTERS = 44
_MARKERS = "osv^Dx+*"
PAPER = "paper"
"""A line of this name is what a paper says: drawn dashed."""


def lines(x: Sequence[float], panels: Panels, x_label: str, *, doubling: bool = False) -> str:
    """One panel beside the other; a value None leaves a gap. `doubling` puts powers of two at equal distances."""
    figure, axes = _panels(len(panels))
    for one, (title, curves) in zip(axes, panels.items(), strict=True):
        for k, (name, values) in enumerate(curves.items()):
            known = [(place, value) for place, value in zip(x, values, strict=True) if value is not None]
            style = "--" if name == PAPER else "-"
            one.plot(*zip(*known, strict=True), style, marker=_MARKERS[k % len(_MARKERS)], markersize=4, label=name)
        one.set(title=title, xlabel=x_label, ylim=(min(0, one.get_ylim()[0]), None))
        if doubling:
            one.set_xscale("log", base=2)
            one.xaxis.set_major_formatter("{x:g}")
        one.legend(fontsize="x-small")
    return _data_url(figure)


def shares_below(panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], x_label: str) -> str:
    """Cumulative distributions: panel → line → (value, share of values up to it)."""
    figure, axes = _panels(len(panels))
    for one, (title, curves) in zip(axes, panels.items(), strict=True):
        for name, steps in curves.items():
            one.plot(*zip(*steps, strict=True), label=name, drawstyle="steps-post")
        one.set(title=title, xlabel=x_label, ylim=(0, 1.02))
        one.legend(fontsize="xx-small", loc="lower right")
    axes[0].set_ylabel("share of values up to")
    return _data_url(figure)


def bars(labels: Sequence[str], series: Mapping[str, Curve], x_label: str) -> str:
    """Horizontal bars, one group per label from the top, one bar per series."""
    height = max(1.6, _BAR_INCHES * len(labels) * len(series) * 0.6 + 0.9)
    figure = Figure((9, height), layout="constrained")
    axes = figure.subplots()
    thick = 0.8 / len(series)
    for k, (name, values) in enumerate(series.items()):
        places = [row + (k - (len(series) - 1) / 2) * thick for row in range(len(labels))]
        known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
        axes.barh([place for place, _ in known], [value for _, value in known], thick, label=name)
    axes.set_yticks(range(len(labels)), [fill(label, _LABEL_LETTERS) for label in labels], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(x_label)
    axes.legend(fontsize="x-small")
    return _data_url(figure)


def _panels(count: int) -> tuple[Figure, list[Any]]:
    across = min(count, _PANELS_BESIDE)
    down = -(-count // across)
    figure = Figure((_PANEL_INCHES[0] * across, _PANEL_INCHES[1] * down), layout="constrained")
    every = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for unused in every[count:]:
        unused.set_visible(False)
    return figure, every[:count]


def _data_url(figure: Figure) -> str:
    """The same figure gives the same bytes: neither a date nor random ids are in them."""
    picture = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "cubecast"}):
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(picture.getvalue()).decode()
