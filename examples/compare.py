"""Is the new detector better? Two systems on the same trials, per codec, then a limit that a release must meet."""

from __future__ import annotations

import sys
from pathlib import Path

import hitmiss as hm


def main(folder: Path) -> None:
    """Write simulated files into a folder and compare the two systems in them."""
    hm.demo_data("asvspoof5", folder, share=0.01)
    key = folder / "ASVspoof5.eval.track_1.tsv"
    old, new = (hm.read(folder / f"scores_{name}.tsv", key, positive="bonafide") for name in ("b", "a"))

    # B − A with its paired interval, over speakers, and a verdict; per codec with p values adjusted by Holm.
    made = hm.compare(old, new, ["eer", "roc_auc"], by=["codec"], unit="speaker", names=("old", "new"))
    row = made.one("eer")
    print(f"EER {row.a:.4f} → {row.b:.4f}: {row.delta:+.4f} [{row.low:+.4f}, {row.high:+.4f}], p = {row.p_value:.4f}")
    print(f"{row.verdict}; this many trials would show a difference of {row.mdd:.4f}")
    print(made.to_polars().filter(metric="eer").select("codec", "a", "b", "delta", "p_adjusted", "verdict"))

    # The same figures as a gate.
    results = hm.measure(new, ["eer"], by=["codec"], bootstrap=1000, unit="speaker")
    for check in hm.gate(results, ["eer[codec=*].high > 0.3"]):
        print("pass" if check.passed else "FAIL", check.figure, check.reason)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/compare"))
