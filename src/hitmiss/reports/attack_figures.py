"""Figures of attacks, from results alone: success, norms, classes, records before and after, places, least strengths;
and all of them that a run of attacks allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.leads import LEADS
from hitmiss.attacks.result import AttackResult, snr_db
from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.interval import share_interval
from hitmiss.metrics.robustness import surviving
from hitmiss.reports.matplots import GREY, PALETTE, axes_for, require_matplotlib
from hitmiss.reports.robustness_display import RobustnessDisplay, StrengthLine
from hitmiss.robustness.attacks import aim_of, measure_attacks
from hitmiss.robustness.campaign import CLEAN, Campaign, Cell, attack_name, strength_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES: Final = ("changed", "changed_correct", "exact_match", "macro_auc")
MOST_BARS: Final = 5
Examples = Mapping[str, tuple[ArrayLike, ArrayLike, float, str]]
"""By title: a record before and after (sample × lead), its sample rate, and the model's answer."""


def save_figures(folder: str | Path, trials: Trials, results: Results, examples: Examples | None = None) -> list[Path]:
    """Draw all figures into a folder, as PNG: curves over strength, norms, classes, places, strengths, records."""
    target, campaign = Path(folder), Campaign.of(trials)
    target.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, figure in (
        *_curves(results),
        *_norms(campaign),
        *_classes(trials, campaign),
        *_places(campaign),
        *_least(campaign),
        *(
            (f"example_{_slug(title)}", triptych(x, y, fs, title=title, said=said))
            for title, (x, y, fs, said) in (examples or {}).items()
        ),
    ):
        drawn.append(target / f"{name}.png")
        figure.savefig(drawn[-1], dpi=150)
    return drawn


def _curves(results: Results) -> Iterator[tuple[str, Figure]]:
    for metric in CURVES:
        if any(e.metric == metric and _is_attack(e) and strength_of(e.run) is not None for e in results):
            yield metric, cast("Figure", RobustnessDisplay.from_results(results, metric).plot().figure)


def _norms(campaign: Campaign) -> Iterator[tuple[str, Figure]]:
    """Draw box plots of the norms by family and strength, aims and places together; controls share the L2 norm."""
    norms: dict[tuple[str, float], tuple[list[float], list[float]]] = {}
    for cell in campaign.cells:
        strength = strength_of(cell.run)
        if not cell.is_control and strength is not None and "delta_l2" in cell.numbers:
            two, peak = norms.setdefault((cell.run["attack"], strength), ([], []))
            two += cell.numbers["delta_l2"].tolist()
            peak += cell.numbers["delta_linf"].tolist()
    if norms:
        yield "norms", norm_boxes(dict(sorted(norms.items())))[0]


def _classes(trials: Trials, campaign: Campaign) -> Iterator[tuple[str, Figure]]:
    """Draw the AUC of every class, clean and under each attack at its greatest strength."""
    last: dict[str, Cell] = {}
    for cell in campaign.cells:
        if not cell.is_control and strength_of(cell.run) is not None:
            last[attack_name(cell.run)] = cell  # cells are sorted by strength
    if not last:
        return
    by_class = [e for e in measure_attacks(trials, by="target") if e.metric == "roc_auc" and e.average is None]

    def bars(run: Mapping[str, str]) -> dict[str, dict[str, float]]:
        found = {e.slice["target"]: e.value for e in by_class if dict(e.run) == dict(run)}
        return {name: {"auc": float("nan") if value is None else value} for name, value in found.items()}

    shown = {f"{name}, strength {cell.run['strength']}": cell.run for name, cell in list(last.items())[:MOST_BARS]}
    yield (
        "classes",
        classwise_metric_bars({CLEAN: bars(campaign.clean.run), **{k: bars(v) for k, v in shown.items()}})[0],
    )


def _places(campaign: Campaign) -> Iterator[tuple[str, Figure]]:
    """Draw window position × true class for every attack that was tried in several places."""
    series: dict[str, list[tuple[float, Cell]]] = {}
    for cell in campaign.cells:
        place = cell.run.get("place", "whole")
        if not cell.is_control and place != "whole" and strength_of(cell.run) is not None:
            name = " ".join(v for k, v in cell.run.items() if k != "place" and v != "any")
            series.setdefault(name, []).append((float(place.removesuffix(" s")), cell))
    for name, found in series.items():
        found.sort(key=lambda pair: pair[0])
        if len(found) > 1:
            success = np.stack([_success(campaign, cell) for _, cell in found])
            count = np.repeat(campaign.truth.sum(axis=0, dtype=np.int64)[:, None], len(found), axis=1)
            with np.errstate(invalid="ignore"):
                rate = (campaign.truth.T.astype(np.float64) @ success.T) / count
            places = [p for p, _ in found]
            yield f"places_{_slug(name)}", success_map(rate, count, campaign.classes, places, title=name)[0]


def _success(campaign: Campaign, cell: Cell) -> Floats:
    """Say for each record whether the attack reached its aim, or changed any bit if it had no aim."""
    reached, _ = aim_of(campaign, cell)
    return (campaign.clean.bits != cell.bits).any(axis=1).astype(np.float64) if np.isnan(reached).any() else reached


def _least(campaign: Campaign) -> Iterator[tuple[str, Figure]]:
    for cell in campaign.cells:
        least = cell.numbers.get("minimal_strength")
        if least is not None and cell.run["strength"] == "minimal" and not cell.is_control:
            yield (
                f"minimal_{_slug(attack_name(cell.run))}",
                minimal_strength_histogram(least, title=attack_name(cell.run))[0],
            )


def _is_attack(e: Estimate) -> bool:
    return e.run.get("attack", CLEAN) != CLEAN and not e.slice


def _slug(name: str) -> str:
    """Return a name that any file system accepts.

    >>> _slug("pgd, force MI 0.5")
    'pgd_force_MI_0.5'
    """
    return "_".join("".join(c if c.isalnum() or c in ".-_" else " " for c in name).split())


BEFORE, AFTER, DIFFERENCE = PALETTE[0], PALETTE[1], "#444444"


def _axes(ax: Axes | None, size: tuple[float, float] = (5.4, 3.8)) -> tuple[Figure, Axes]:
    """Return these axes with their figure, or new ones."""
    axes = axes_for(ax, size)
    return cast("Figure", axes.figure), axes


def _plain(axes: Axes) -> Axes:
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _some(results: Sequence[AttackResult]) -> Sequence[AttackResult]:
    if not results:
        raise DataError.of("no-results-draw")
    return results


def asr_vs_strength(results: Sequence[AttackResult], ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw the share of changed predictions against strength, one line per family, with Wilson's 95 % intervals."""
    lines = []
    for family in sorted({r.ptype for r in _some(results)}):
        own = [r for r in results if r.ptype == family]
        strengths = sorted({r.strength for r in own})
        hits = np.array(
            [sum(r.untargeted_success for r in own if r.strength == s) for s in strengths], dtype=np.float64
        )
        of = np.array([sum(r.strength == s for r in own) for s in strengths], dtype=np.float64)
        ends = np.array([share_interval(a, n) for a, n in zip(hits, of, strict=True)])
        name = f"{family} (n = {int(of.max())})"
        lines.append(StrengthLine(name, np.array(strengths), hits / of, ends[:, 0], ends[:, 1], of=name))
    axes = RobustnessDisplay("changed", "strength", tuple(lines), best="low").plot(ax)
    axes.set(ylabel="success rate (any bit changed)", ylim=(-0.03, 1.03))
    return cast("Figure", axes.figure), axes


def norm_distributions(results: Sequence[AttackResult], ax: Axes | None = None) -> tuple[Figure, Axes | Array]:
    """Draw box plots of the norms by family and strength: L2 on the left, L∞ on the right (only L2 in given axes)."""
    keys = sorted({(r.ptype, r.strength) for r in _some(results)})
    own = {key: [r for r in results if (r.ptype, r.strength) == key] for key in keys}
    return norm_boxes(
        {key: ([r.delta_norm_l2 for r in group], [r.delta_norm_linf for r in group]) for key, group in own.items()}, ax
    )


def norm_boxes(
    norms: Mapping[tuple[str, float], tuple[Sequence[float], Sequence[float]]], ax: Axes | None = None
) -> tuple[Figure, Axes | Array]:
    """Draw the same from the L2 and L∞ norms (mV) of each family and strength."""
    twos = {key: two for key, (two, _) in norms.items()}
    if ax is not None:
        _boxes(ax, twos, "L2 norm of the change (mV)")
        return cast("Figure", ax.figure), ax
    require_matplotlib()
    from matplotlib.figure import Figure

    is_crowded = len(norms) > 6
    size = (max(6.0, 1.5 + 0.55 * len(norms)), 6.4) if is_crowded else (8.4, 3.8)
    figure = Figure(figsize=size, layout="constrained")
    both = figure.subplots(2, 1) if is_crowded else figure.subplots(1, 2)
    _boxes(_plain(both[0]), twos, "L2 norm of the change (mV)")
    _boxes(
        _plain(both[1]),
        {key: [1000.0 * v for v in peak] for key, (_, peak) in norms.items()},
        "L∞ norm of the change (µV)",
    )
    return figure, both


def _boxes(axes: Axes, norms: Mapping[tuple[str, float], Sequence[float]], title: str) -> None:
    families = sorted({family for family, _ in norms})
    drawn = axes.boxplot(
        list(norms.values()),
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "#000000"},
        flierprops={"markersize": 3},
    )
    for box, (family, _) in zip(drawn["boxes"], norms, strict=True):
        box.set(facecolor=PALETTE[families.index(family) % 7], alpha=0.45)
    is_crowded = len(norms) > 5
    between = " " if is_crowded else "\n"
    names = [f"{family}{between}{strength:g}" for family, strength in norms]
    axes.set_xticks(range(1, len(names) + 1), names, fontsize=7.5)
    if is_crowded:
        axes.tick_params(axis="x", labelrotation=60)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    axes.set_ylabel(title)
    axes.set_ylim(bottom=0)


def classwise_metric_bars(
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str = "auc", ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw one group of bars per class, one bar per condition; an undefined figure has a cross instead of a bar."""
    if not metrics:
        raise DataError.of("no-metrics-draw")
    figure, axes = _axes(ax, (6.4, 3.6))
    first = next(iter(metrics.values()))
    classes = [name for name in first if name != "macro"] + (["macro"] if "macro" in first else [])
    for condition, found in metrics.items():
        if set(found) != set(first):
            raise DataError.of("about-other-classes-first", condition=condition, found=tuple(found), first=tuple(first))
    if metric not in first[classes[0]]:
        raise UnknownName("metric of the bars", metric, first[classes[0]])
    width = 0.8 / len(metrics)
    for i, (condition, figures) in enumerate(metrics.items()):
        values = np.array([figures[name][metric] for name in classes], dtype=np.float64)
        places = np.arange(len(classes)) + (i - (len(metrics) - 1) / 2) * width
        color = GREY if condition == "clean" else PALETTE[(i - ("clean" in metrics)) % 7]  # attacks as in the curves
        axes.bar(places, np.nan_to_num(values), width * 0.92, color=color, label=condition)
        axes.plot(
            places[np.isnan(values)], np.full(int(np.isnan(values).sum()), 0.02), "x", color="#000000", markersize=6
        )
    axes.set_xticks(range(len(classes)), classes)
    axes.set(ylabel=metric.upper() if metric == "auc" else metric, ylim=(0, 1.03))
    axes.grid(axis="x", visible=False)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(len(metrics), 5 if max(map(len, metrics)) < 12 else 2),
        frameon=False,
        fontsize=8.5,
    )
    return figure, axes


def triptych(x: ArrayLike, changed: ArrayLike, fs: float, *, lead: int = 1, title: str = "", said: str = "") -> Figure:
    """Draw one lead of a record: clean, perturbed, and the difference on its own scale; `said`: the model's answer."""
    require_matplotlib()
    from matplotlib.figure import Figure

    before, after = np.asarray(x, dtype=np.float64), np.asarray(changed, dtype=np.float64)
    if before.shape != after.shape or before.ndim != 2:
        raise DataError.of("both-records-sample-lead", shape=str(before.shape), shape_2=str(after.shape))
    t = np.arange(len(before)) / fs
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    rows = figure.subplots(3, 1, sharex=True)
    name = LEADS[lead] if before.shape[1] == 12 else f"lead {lead}"
    difference = 1000.0 * (after - before)[:, lead]
    shown = (
        (before[:, lead], BEFORE, "clean (mV)"),
        (after[:, lead], AFTER, "perturbed (mV)"),
        (difference, DIFFERENCE, "difference (µV)"),
    )
    for axes, (values, color, label) in zip(rows, shown, strict=True):
        _plain(axes).plot(t, values, color=color, linewidth=0.9)
        axes.set_ylabel(label)
    low, high = min(before[:, lead].min(), after[:, lead].min()), max(before[:, lead].max(), after[:, lead].max())
    for axes in rows[:2]:
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    rows[2].set_xlabel("time (s)")
    rows[0].set_title(
        f"{title + ': ' if title else ''}{name}, SNR {snr_db(before, after - before):.1f} dB{said and f'; {said}'}",
        fontsize=10.5,
        loc="left",
    )
    return figure


def success_map(
    rate: NDArray[np.float64],
    count: NDArray[np.int64],
    classes: Sequence[str],
    places: Sequence[float],
    ax: Axes | None = None,
    *,
    title: str = "",
) -> tuple[Figure, Axes]:
    """Draw a map of success rates with their counts: classes as rows, centres of windows (seconds) as columns."""
    figure, axes = _axes(ax, (max(5.0, 1.8 + 0.62 * len(places)), 1.2 + 0.44 * max(len(classes), 3)))
    image = axes.imshow(np.ma.masked_invalid(rate), cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto")
    for k, j in np.ndindex(*rate.shape):
        text = f"{rate[k, j]:.2f}\n({count[k, j]})" if count[k, j] else "none"
        axes.text(
            j, k, text, ha="center", va="center", fontsize=6.5, color="#000000" if rate[k, j] > 0.55 else "#ffffff"
        )
    axes.grid(visible=False)
    axes.set_facecolor("#777777")
    axes.set_xticks(range(len(places)), [f"{p:g}" for p in places])
    axes.set_yticks(range(len(classes)), classes)
    axes.set(xlabel="centre of the window (s)", ylabel="true class")
    axes.set_title(title, fontsize=10.5, loc="left")
    figure.colorbar(image, ax=axes, label="success rate (records)")
    return figure, axes


def minimal_strength_histogram(
    minimal: ArrayLike, ax: Axes | None = None, *, bins: int = 20, title: str = ""
) -> tuple[Figure, Axes]:
    """Draw how many records flip at which minimal strength, and the share that no weaker attack flips."""
    from matplotlib.ticker import MaxNLocator

    least = np.asarray(minimal, dtype=np.float64)
    if not len(least) or np.isnan(least).any():
        raise DataError.of("minimal-strengths-numbers-infinite")
    figure, axes = _axes(ax)
    edges = np.linspace(0.0, 1.0, bins + 1)
    axes.hist(least[np.isfinite(least)], edges.tolist(), color=PALETTE[0], alpha=0.6, label="records that flip")
    axes.set(xlabel="least strength that flips the record", ylabel="records", xlim=(0, 1))
    right = axes.twinx()
    at = np.unique([0.0, 1.0, *least[np.isfinite(least)]])
    right.step(at, surviving(least, at), where="post", color=PALETTE[1], linewidth=1.8, label="share not flipped yet")
    right.set(ylabel="share not flipped yet", ylim=(0, 1.03))
    right.spines["top"].set_visible(False)
    never = int(np.isinf(least).sum())
    axes.set_title(
        f"{title + ': ' if title else ''}{len(least)} records, of which {never or 'none'} never flip{'s' * (never == 1)}",
        fontsize=10.5,
        loc="left",
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8.5)
    return figure, axes
