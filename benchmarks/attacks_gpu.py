"""The table of `attacks.py` on a GPU, seconds on the clock, without the loop through the documented names.

    python benchmarks/attacks_gpu.py [--device cuda] [--records 224] [--epochs 4]

Needs Python 3.11, torch, numpy and scipy, and of hitmiss only what attacks (no polars, no pydantic, no typer, no network);
ART where it is installed. Without the PTB-XL sample the ECGs are simulated. `--device cpu --records 16 --epochs 1` tries it out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # a machine where hitmiss is not installed

from attacks import Bench, measured
from ecg_parts import printed


def main() -> None:
    """Print the table; without CUDA say so."""
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--records", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=4)
    chosen = parser.parse_args()
    if chosen.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device here; `python benchmarks/attacks.py` measures the CPU")
    bench = Bench(chosen.device, chosen.records, 1, documented=False, epochs=chosen.epochs)
    printed(measured(bench))
    print(f"\n{bench.about}.")


if __name__ == "__main__":
    main()
