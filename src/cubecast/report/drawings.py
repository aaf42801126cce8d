"""Pictures of a run: its timeline, the tree of a publication, and a violation as a space-time diagram."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cubecast.report.plots import (
    ACCENT,
    BAD,
    GOOD,
    LINE,
    NARROW_INCHES,
    SECOND,
    SOFT,
    SURFACE,
    THIRD,
    WARN,
    WIDE_INCHES,
    blank,
    styled,
    svg,
)
from cubecast.report.story import Moment, Story, StoryMark, StoryTree, WitnessScene

_MARKS = {"killed": BAD, "suspected": WARN, "gap": THIRD, "joined": GOOD, "left": SECOND}
MOST_MARKS = 24
LABEL_LINES = 3
_LETTER_INCHES = 0.068
"""Of the marks' names, at most, in the size they are written in."""
MOST_IN_TREE = 256


def timeline(story: Story, unit: str, *, narrow: bool = False) -> str:
    """Deliveries and publications per unit of time, with what happened meanwhile."""
    with styled():
        figure, axes = blank(NARROW_INCHES if narrow else WIDE_INCHES)
        places = [story.width * place for place in range(len(story.deliveries))]
        delivered = [count / story.width for count in story.deliveries]
        axes.fill_between(places, delivered, step="post", color=ACCENT, alpha=0.14, linewidth=0)
        axes.plot(places, delivered, drawstyle="steps-post", color=ACCENT, label="delivered")
        published = [count / story.width for count in story.publications]
        axes.plot(places, published, drawstyle="steps-post", color=SECOND, linewidth=1.2, label="published")
        top = max([*delivered, *published, 1e-9])
        axes.set(xlim=(0, story.lasted), ylim=(0, top * 1.32), xlabel=f"time, {unit}")
        axes.set_ylabel(f"messages per {unit}")
        axes.grid(axis="x", visible=False)
        seen: set[str] = set()
        for mark in story.marks[:MOST_MARKS]:
            label = None if mark.what in seen else mark.what
            at, colour = mark.at - story.began, _MARKS[mark.what]
            axes.axvline(at, color=colour, linewidth=1.0, linestyle=(0, (3, 2)), label=label)
            seen.add(mark.what)
        for words, mark, line, side in _labels(story, _LETTER_INCHES / figure.get_figwidth()):
            height, colour = top * (1.28 - 0.085 * line), _MARKS[mark.what]
            axes.text(mark.at - story.began, height, words, color=colour, fontsize=7.5, ha=side, va="top")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3 if narrow else 7)
        return svg(figure)


def _labels(story: Story, letter: float) -> Iterator[tuple[str, StoryMark, int, str]]:
    """Names for marks: the words, the line they stand on and the side they are aligned to. Each thing that happened to
    a node is named once, where there is room; what is not named is told beside the picture."""
    named: set[tuple[int, str]] = set()
    taken = [0.0] * LABEL_LINES
    for mark in story.marks[:MOST_MARKS]:
        words = f" node {mark.node} {mark.what} "
        at, width = (mark.at - story.began) / story.lasted, letter * len(words)
        side = "right" if at + width > 1 else "left"
        left = at - width if side == "right" else at
        line = next((number for number, end in enumerate(taken) if end <= left), None)
        if (mark.node, mark.what) not in named and line is not None:
            named.add((mark.node, mark.what))
            taken[line] = left + width
            yield words, mark, line, side


def tree(found: StoryTree) -> str:
    """The publication's way from its source downwards, one level per hop."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for node, parent in sorted(found.parents.items()):
        children[parent].append(node)
    place: dict[int, tuple[float, int]] = {}
    _lay_out(found.source, 0, children, place, [0.0])
    depth = max(level for _, level in place.values())
    width = max(x for x, _ in place.values()) + 1
    small = len(place) > 40
    with styled():
        figure, axes = blank((max(4.4, min(9.6, 0.34 * width + 1.2)), 1.1 + 0.62 * depth))
        for node, parent in found.parents.items():
            if node in place and parent in place:
                (x, y), (above, level) = place[node], place[parent]
                axes.plot((above, x), (-level, -y), color=LINE, linewidth=1.1, zorder=1)
        for node, (x, y) in place.items():
            colour = ACCENT if node == found.source else SURFACE
            axes.scatter([x], [-y], s=60 if small else 210, color=colour, edgecolors=ACCENT, linewidths=1.2, zorder=2)
            if not small:
                ink = SURFACE if node == found.source else SOFT
                axes.text(x, -y, str(node), ha="center", va="center", fontsize=7, color=ink, zorder=3)
        axes.set(xlim=(-0.8, width - 0.2), ylim=(-depth - 0.5, 0.5))
        axes.set_yticks([-level for level in range(depth + 1)], [_hops(level) for level in range(depth + 1)])
        axes.set_xticks([])
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.tick_params(length=0)
        return svg(figure)


def _hops(level: int) -> str:
    return "source" if level == 0 else f"{level} hop" if level == 1 else f"{level} hops"


def _lay_out(
    node: int,
    level: int,
    children: Mapping[int, Sequence[int]],
    place: dict[int, tuple[float, int]],
    free: list[float],
) -> float:
    """Leaves side by side, everybody else above the middle of its children; where a node hears itself, once."""
    place[node] = (free[0], level)
    below = [
        _lay_out(child, level + 1, children, place, free) for child in children.get(node, ()) if child not in place
    ]
    x = (below[0] + below[-1]) / 2 if below else free[0]
    if not below:
        free[0] += 1.0
    place[node] = (x, level)
    return x


def space_time(scene: WitnessScene) -> str:
    """Logs as lines from left to right, publications and deliveries on them, messages as arrows; the culprit is red."""
    rows = {log: -number for number, log in enumerate(scene.logs)}
    with styled():
        figure, axes = blank((9.6, 0.5 + 0.78 * len(rows)))
        end = len(scene.moments)
        for log, y in rows.items():
            axes.plot((-0.6, end - 0.4), (y, y), color=LINE, linewidth=1.4, zorder=1)
            axes.text(-0.75, y, f"node {log[0]}.{log[1]}", ha="right", va="center", fontsize=8.5, color=SOFT)
        colours = dict(zip(scene.messages, (ACCENT, THIRD, SECOND), strict=False))
        at: dict[Moment, tuple[int, int]] = {
            moment: (x, rows[moment.node, moment.incarnation]) for x, moment in enumerate(scene.moments)
        }
        published = {moment.message: place for moment, place in at.items() if moment.kind == "publish"}
        for moment, (x, y) in at.items():
            colour = colours[moment.message]
            if moment.kind == "deliver" and moment.message in published and published[moment.message] != (x, y):
                start = published[moment.message]
                # Along its own line it would hide the others; far ones swing out little more than near ones.
                bend = f"arc3,rad={0.03 + 0.22 / (x - start[0]):.3f}" if start[1] == y and x > start[0] else "arc3"
                arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.3, "shrinkA": 6, "shrinkB": 6}
                arrow["connectionstyle"] = bend
                axes.annotate("", xy=(x, y), xytext=start, arrowprops=arrow, zorder=2, annotation_clip=False)
            face = colour if moment.kind == "publish" else SURFACE
            edge = BAD if moment.culprit else colour
            axes.scatter(
                [x], [y], s=95, color=face, edgecolors=edge, linewidths=2.4 if moment.culprit else 1.5, zorder=3
            )
            words = f"{moment.kind} {_name(moment.message)}\nrow {moment.seq}"
            paper = {"facecolor": SURFACE, "edgecolor": "none", "alpha": 0.85, "pad": 0.6}  # arrows pass behind
            ink = BAD if moment.culprit else SOFT
            axes.text(x, y + 0.2, words, ha="center", va="bottom", fontsize=7, color=ink, bbox=paper, zorder=3)
        axes.set(xlim=(-1.6, end - 0.3), ylim=(-len(rows) + 0.4, 0.7))
        axes.set_axis_off()
        return svg(figure)


def _name(message: tuple[int, int, int]) -> str:
    return ".".join(map(str, message))
