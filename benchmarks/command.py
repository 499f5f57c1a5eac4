"""The whole command, files to tables, against pandas + scikit-learn on the same files (680,774 trials, simulated).

python benchmarks/command.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from hitmiss.simulate.asvspoof5 import write

PEER = Path(__file__).with_name("peers") / "pandas_sklearn.py"
METRICS = ["-m", "min_dcf", "-m", "eer", "-m", "act_dcf", "-m", "cllr", "-m", "roc_auc"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(words: list[str], repeats: int = 3) -> float:
    """User and system time of a process, the best of some runs after one that warms the caches."""
    best = float("inf")
    for i in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if i:
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def rows() -> list[dict[str, object]]:
    """The table: what, ours, theirs, the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        data = write(Path(folder) / "asvspoof5")
        files = [str(data / "scores_a.tsv"), str(data / "ASVspoof5.eval.track_1.tsv")]
        ours = [
            sys.executable,
            "-m",
            "hitmiss",
            "score",
            files[0],
            "--key",
            files[1],
            "-p",
            "asvspoof5",
            "--score-kind",
            "llr",
        ]
        ours += ["--by", "codec", "--gap", "none"]
        theirs = [sys.executable, str(PEER), *files]
        plain, peer = cpu_seconds([*ours, *METRICS, "--bootstrap", "0"]), cpu_seconds([*theirs, "0"])
        few = (cpu_seconds([*theirs, "3"], 1) - peer) / 3
        intervals = cpu_seconds([*ours, "-m", "eer", "-m", "min_dcf", "--bootstrap", "1000", "--unit", "none"])
        over = _over_units([word for word in ours if word not in ("--by", "codec")])
    peer_intervals = peer + 1000 * few
    return [
        {
            "what": "files → 5 figures, all trials and 12 codecs",
            "hitmiss s": plain,
            "pandas + scikit-learn s": peer,
            "ratio": peer / plain,
        },
        {
            "what": "files → EER and minDCF with 1,000-replicate intervals, all trials and 12 codecs",
            "hitmiss s": intervals,
            "pandas + scikit-learn s": peer_intervals,
            "ratio": peer_intervals / intervals,
            "remark": "theirs: 3 replicates measured, scaled to 1,000",
        },
        *over,
    ]


def _over_units(command: list[str]) -> list[dict[str, object]]:
    """The command with the protocol's metrics, its intervals over units against the same without intervals."""
    without = cpu_seconds([*command, "--bootstrap", "0"])
    found: list[dict[str, object]] = []
    for unit in ("speaker", "speaker,attack"):
        with_them = cpu_seconds([*command, "--bootstrap", "1000", "--unit", unit])
        found.append(
            {
                "what": f"files → all trials, the protocol's metrics with 1,000 replicates over {unit}",
                "hitmiss s": with_them,
                "pandas + scikit-learn s": "–",
                "ratio": with_them / without,
                "remark": f"ratio to the same command without intervals ({without:.2f} s)",
            }
        )
    return found


def main() -> None:
    """Print the table."""
    found = rows()
    head = list(found[1])
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in found:
        print(f"| {' | '.join(_shown(row.get(name, '')) for name in head)} |")


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
