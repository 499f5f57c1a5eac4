"""An agent that may say "uncertain": what slips through, what people must look at, and two thresholds with a guarantee."""

from __future__ import annotations

import sys
from pathlib import Path

import hitmiss as hm
from hitmiss.protocols.triage import evaluate_triage, evaluate_trials, repeats_of, write_metrics


def main(folder: Path) -> None:
    """Write simulated results into a folder and evaluate them."""
    hm.demo_data("triage", folder, share=0.5)

    # Verdicts of two configurations, three trials each: means with intervals over items, and the documented file.
    found = evaluate_triage(folder / "results.jsonl", folder / "dataset.jsonl", bootstrap=500)
    for e in repeats_of(found.figures):
        if e.metric in ("coverage", "accuracy_answered", "fake_slip_rate", "real_false_flag_rate"):
            print(f"{e.run['tools']:>9} {e}")
    for e in found.flips:
        print(f"{e.run['tools']:>9} {e}")
    write_metrics(found, folder / "metrics.json")

    # Verdicts from a score: thresholds chosen on one set so that both rates hold on new data, checked on another.
    dev, test = (hm.read(folder / name, positive="fake", higher="fake") for name in ("dev_scores.csv", "scores.csv"))
    choice = hm.guaranteed(hm.Tally.of(dev.label, dev.score), max_slip=0.05, max_false_flag=0.05)
    assert choice.point is not None, choice.reason
    print(choice.point.bands)
    checked = evaluate_trials(hm.at_bands(test, choice.point.bands), metrics=["fake_slip_rate", "real_false_flag_rate"])
    print(*checked.figures, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/triage"))
