"""ASVspoof 5 Track 1 from files to figures: simulate a small evaluation, score it, look at domains, compare systems."""

from __future__ import annotations

import sys
from pathlib import Path

import hitmiss as hm
from hitmiss.protocols.asvspoof5 import bootstrap_ci, compute_eer, compute_min_dcf, evaluate_per_domain


def main(folder: Path) -> None:
    """Write simulated files into a folder and evaluate them in three ways."""
    hm.demo_data("asvspoof5", folder, share=0.02)
    scores, key = folder / "scores_a.tsv", folder / "ASVspoof5.eval.track_1.tsv"

    # Files to results: everything the protocol says, per codec, with intervals over speakers.
    results = hm.evaluate(scores, key, "asvspoof5", score_kind="llr", by=["codec"], bootstrap=1000, unit="speaker")
    print(results.one("min_dcf"), results.one("eer", codec="C04"), sep="\n")
    print(results.signature)

    # Trials to results: your own choice of metrics.
    trials = hm.read(scores, key, positive="bonafide", negative="spoof")
    print(hm.measure(trials, ["tpr_at_fpr(fpr=0.01)", "roc_auc"], bootstrap=1000).one("roc_auc"))

    # The function names of the ASVspoof 5 evaluation plan, on arrays and data frames.
    frame = trials.to_pandas().assign(key=lambda t: t["label"].map({1: "bonafide", 0: "spoof"}))
    print(evaluate_per_domain(frame))
    print(compute_eer(frame["score"], frame["key"]), compute_min_dcf(frame["score"], frame["key"]))
    print(bootstrap_ci(frame["score"], frame["key"], compute_eer))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/example"))
