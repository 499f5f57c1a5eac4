"""The table of `attacks.py` on a GPU, seconds on the clock. Needs torch, numpy, scipy and polars alone, and no network.

python benchmarks/attacks_gpu.py
"""

from __future__ import annotations

from attacks import rows
from ecg_parts import printed


def main() -> None:
    """Print the table; without CUDA say so."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device here; `python benchmarks/attacks.py` measures the CPU")
    printed(rows("cuda"))


if __name__ == "__main__":
    main()
