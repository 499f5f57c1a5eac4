"""What became of trials, stage by stage, as a plate of boxes and ribbons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.findings.wording import per_cent
from hitmiss.reports.plate import MUTED, Axis, Block, Mark, Plate, Ribbon

ENDS: Final = {"right": 2, "wrong": 1, "open": MUTED}
"""The colours of the outcomes of a trial."""
ORDER: Final = ("right", "wrong", "open", "not asked", "uncertain", "cannot tell", "no verdict", "failed")
NODE: Final = 0.035
"""Half the width of a box of a flow."""


@dataclass(frozen=True)
class FlowPath:
    """How many trials took one path through the stages of a flow; the last stage is right, wrong or open."""

    stages: tuple[str, ...]
    n: int


def flow_plate(titles: Sequence[str], ways: Sequence[FlowPath], finding: str = "") -> Plate:
    """Draw the outcomes of trials, stage by stage: boxes as high as their number of trials, ribbons by outcome.

    >>> plate = flow_plate(("system", "outcome"), [FlowPath(("fake", "right"), 3), FlowPath(("uncertain", "open"), 1)])
    >>> [mark.label for mark in plate.marks if isinstance(mark, Block)]
    ['fake 3', 'uncertain 1', 'right 3', 'open 1']
    """
    total = sum(way.n for way in ways) or 1
    gap = 0.045 * total
    columns = [_nodes(ways, i, gap) for i in range(len(titles))]
    tall = max((max(high for _, high in nodes.values()) for nodes in columns if nodes), default=float(total))
    marks: list[Mark] = []
    for i in range(len(titles) - 1):
        marks += _ribbons(ways, i, columns[i], columns[i + 1], tall)
    for i, nodes in enumerate(columns):
        last = i == len(titles) - 1
        for name, (low, high) in nodes.items():
            n = round(high - low)
            about = f"{titles[i]}: {name}, {n:,} of {total:,} ({per_cent(n / total)})"
            ends = (tall - high, tall - low)
            marks.append(Block((i - NODE, i + NODE), ends, ENDS.get(name, 0) if last else 6, f"{name} {n:,}", about))
    x = Axis("", -0.12, len(titles) - 1 + 0.2 * len(titles), tuple((float(i), title) for i, title in enumerate(titles)))
    key = tuple((color, "bar", name) for name, color in ENDS.items() if name in columns[-1])
    return Plate(x, Axis("", -0.01 * tall, 1.01 * tall, ()), tuple(marks), finding, is_bare=True, key=key)


def _nodes(ways: Sequence[FlowPath], stage: int, gap: float) -> dict[str, tuple[float, float]]:
    """Return the boxes of one stage from the top down, each with its ends."""
    sizes: dict[str, int] = {}
    for way in ways:
        sizes[way.stages[stage]] = sizes.get(way.stages[stage], 0) + way.n
    known = {name: i for i, name in enumerate(ORDER)}
    found, at = dict[str, tuple[float, float]](), 0.0
    for name in sorted(sizes, key=lambda name: (known.get(name.removeprefix("said "), -1), name)):
        found[name] = (at, at + sizes[name])
        at += sizes[name] + gap
    return found


def _ribbons(
    ways: Sequence[FlowPath],
    stage: int,
    left: dict[str, tuple[float, float]],
    right: dict[str, tuple[float, float]],
    tall: float,
) -> list[Mark]:
    sizes: dict[tuple[str, str, str], int] = {}
    for way in ways:
        key = (way.stages[stage], way.stages[stage + 1], way.stages[-1])
        sizes[key] = sizes.get(key, 0) + way.n
    out, into = ({name: ends[0] for name, ends in nodes.items()} for nodes in (left, right))
    rank = {name: i for side in (left, right) for i, name in enumerate(side)}
    made: list[Mark] = []
    for (a, b, end), n in sorted(sizes.items(), key=lambda kv: (rank[kv[0][0]], rank[kv[0][1]], ORDER.index(kv[0][2]))):
        start, goal = (tall - out[a] - n, tall - out[a]), (tall - into[b] - n, tall - into[b])
        out[a] += n
        into[b] += n
        about = f"{a} → {b}: {n:,}, {end} in the end"
        made.append(Ribbon((stage + NODE, stage + 1 - NODE), start, goal, ENDS[end], about))
    return made
