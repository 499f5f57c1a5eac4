"""What the summary says to people with one minute, and what the page shows of several runs: told by hand-made figures."""

from __future__ import annotations

import numpy as np
import pytest

from hitmiss.core.design import Design
from hitmiss.core.finding import Remark
from hitmiss.core.results import REVERSED, Estimate, Results
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.reports.displays.display import plate_of
from hitmiss.reports.displays.tippett import TippettDisplay
from hitmiss.reports.evaluations import RunData, evaluations
from hitmiss.reports.heat import heat_map
from hitmiss.reports.page import compose
from hitmiss.reports.result_tables import overall_table
from hitmiss.reports.sources import Measuring, measured
from hitmiss.reports.summary import Summary, summarize
from hitmiss.reports.table_style import PAGE


def card(*rows: Estimate, warnings: tuple[str, ...] = ()) -> Summary:
    return summarize(evaluations([RunData("run", Results(rows, warnings=warnings))])[0])


def test_what_readers_noted_is_no_failure_and_what_may_be_wrong_is_one() -> None:
    made = card(
        Estimate("eer", 0.1, 0.08, 0.12, n=100, n_positive=50),
        warnings=("languages inferred from file names: en, tr", Remark("scores are REVERSED", REVERSED)),
    ).verdict
    assert [line.text for line in made.checks if line.status == "failed"] == ["scores are REVERSED"]
    assert made.notes == ("languages inferred from file names: en, tr",)


def test_a_gap_between_shares_is_in_percentage_points() -> None:
    whole = Estimate("eer", 0.1, 0.08, 0.12, n=100, n_positive=50)
    gap = Estimate("eer", 0.24, 0.133, 0.323, n=100, n_positive=50, slice={"codec": "rest − NONE"}, average="gap")
    (line,) = [line for line in card(whole, gap).verdict.fails if line.status == "failed"]
    assert "+24.0 percentage points [13.3, 32.3]" in line.text and "%" not in line.text


def test_both_costs_of_miscalibration_have_the_same_places() -> None:
    least = Estimate("min_dcf", 0.2861, 0.268, 0.304, n=100, n_positive=50)
    actual = Estimate("act_dcf", 0.78931, 0.7824, 0.7966, n=100, n_positive=50)
    (line,) = [line for line in card(least, actual).verdict.checks if line.name == "calibration"]
    assert line.status == "failed"
    assert "cost 0.789 [0.782, 0.797], those at the best threshold 0.286;" in line.text


def test_a_tippett_plot_of_several_runs_shows_both_ends_of_all() -> None:
    """A run with small ratios beside one with large ones: nothing of either is cut, but beyond a factor of 10¹²."""
    rng = np.random.default_rng(0)
    label = np.tile([1, 0], 200)
    lines = [
        (name, TippettDisplay.from_tally(Tally.of(label, scale * (2 * label - 1) + rng.normal(size=400))))
        for name, scale in (("bold", 9.0), ("timid", 0.1))
    ]
    axis = plate_of(lines).x
    low, high = axis.low, axis.high
    every = np.concatenate([np.concatenate([d.positive_lr, d.negative_lr]) for _, d in lines])
    assert low == pytest.approx(max(every.min(), -12)) and high == pytest.approx(min(every.max(), 12))


def test_a_map_of_columns_that_do_not_cross_is_left_out() -> None:
    def of(cells: list[tuple[str, str]]) -> bool:
        rows = [Estimate("eer", 0.1, n=10, n_positive=5, slice={"codec": c, "q": q}) for c, q in cells]
        made = heat_map(Results(tuple(rows)), ("codec", "q"), "eer", {})
        assert made is not None
        return made.is_crossed

    assert of([("a", "1"), ("a", "2"), ("b", "1")])
    assert not of([("a", "1"), ("b", "2")])  # every row has one cell
    assert not of([("a", "1"), ("b", "1")])  # there is one column
    assert not of([("a", "1"), ("a", "2")])  # there is one row


def test_the_verdict_stands_beside_the_difference_on_the_page() -> None:
    rng = np.random.default_rng(1)
    label = np.tile([1, 0], 40)
    sides = [
        measured(
            Trials.of(label, rng.normal(size=80) + s * label, item=[str(i) for i in range(80)]),
            name,
            Measuring(Design.of(["eer"], bootstrap=50)),
        )
        for name, s in (("one", 0.5), ("two", 2.0))
    ]
    (part,) = compose(sides).parts
    heads = [text for text, _, _ in part.section("versus").tables[0].heads]
    at = next(i for i, head in enumerate(heads) if head.startswith("B − A"))
    assert heads[at + 1] == "verdict" and sorted(heads) == sorted({*heads})
    for row in part.section("versus").tables[0].rows:
        assert row[at + 1].text in ("B better", "no difference shown") and " ↓" in row[0].text


def test_a_table_of_many_metrics_is_turned_round_where_that_makes_it_narrower() -> None:
    """Every figure of the grid stands in the turned table, in the line of its metric and the column of its run."""
    metrics = [f"m{i}" for i in range(12)]
    rows = tuple(
        Estimate(m, (i + 1) / 100 + r / 2, n=10, n_positive=4, run={"run": run})
        for r, run in enumerate(("one", "two"))
        for i, m in enumerate(metrics)
    )
    made = overall_table(Results(rows), "fake", PAGE)
    assert [text for text, _, _ in made.heads] == ["metric", "one", "two"]
    lines = {row[0].text: [cell.text for cell in row[1:]] for row in made.rows}
    assert lines["n"] == ["10", "10"] and lines["fake"] == ["4", "4"]
    for i, metric in enumerate(metrics):
        assert lines[f"{metric} ↓"] == [f"{(i + 1) / 100 + r / 2:.4f}" for r in (0, 1)]
    narrow = overall_table(Results(tuple(e for e in rows if e.metric in metrics[:3])), "fake", PAGE)
    assert [text for text, _, _ in narrow.heads][:3] == ["run", "n", "fake"]
