"""What a board keeps of measured systems, so that one more system costs the reading of its own files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.boards.numbers import BoardNumber
from hitmiss.boards.plan import BoardPlan
from hitmiss.boards.system import MeasuredSystem, Rejected, file_digest
from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.engine.shared_replicates import RunReplicates

__all__ = ["BoardCache"]

KIND: Final = "board cache"


class BoardCache:
    """A folder with one file of numbers and one of replicates for each system that was measured.

    A system is measured anew if a byte of its score files, of a key, of the question or of hitmiss has changed.
    """

    def __init__(self, folder: str | Path, plan: BoardPlan, design: Design, reading: ReadSpec, metric: str) -> None:
        self.folder = Path(folder)
        self.plan = plan
        keys = {d.name: [file_digest(d.key) if d.key else "", d.protocol, d.positive] for d in plan.datasets}
        asked = {"design": design.to_plain(), "reading": reading.to_plain(), "metric": metric, "keys": keys}
        made_by = {"hitmiss": __version__, "numpy": np.__version__, "polars": pl.__version__}
        self.question = hashlib.sha256(artifacts.canonical({**asked, **made_by})).hexdigest()

    def get(self, name: str) -> MeasuredSystem | None:
        """Return a system as it was measured; None if it was not, or if something has changed since."""
        place = self._place(name)
        if not place.with_suffix(".json").is_file() or not place.with_suffix(".npz").is_file():
            return None
        try:
            stored = artifacts.load(place.with_suffix(".json"), KIND)
            digests = {dataset: file_digest(path) for dataset, path in self.plan.files[name].items()}
            if stored.get("question") != self.question or stored.get("digests") != digests:
                return None
            arrays = artifacts.load_arrays(place.with_suffix(".npz"), KIND, place.with_suffix(".npz").name)
            return _system(name, stored, arrays)
        except (DataError, KeyError, TypeError, ValueError):
            return None  # a damaged entry is measured anew

    def put(self, found: MeasuredSystem) -> None:
        """Keep a system."""
        import io

        self.folder.mkdir(parents=True, exist_ok=True)
        place = self._place(found.name)
        facts = {
            dataset: {k: v for k, v in asdict(own).items() if k != "drawn"} for dataset, own in found.replicates.items()
        }
        document = {
            "schema": 1,
            "kind": KIND,
            "question": self.question,
            "digests": dict(found.digests),
            "numbers": {
                d: {m: {s: b.to_dict() for s, b in slices.items()} for m, slices in metrics.items()}
                for d, metrics in found.numbers.items()
            },
            "replicates": facts,
            "rejected": [asdict(r) for r in found.rejected],
        }
        buffer = io.BytesIO()
        arrays = {f"d{i}": own.drawn for i, own in enumerate(found.replicates.values())}
        np.savez(buffer, allow_pickle=False, **arrays)
        artifacts.write(place.with_suffix(".npz"), buffer.getvalue())
        artifacts.write(place.with_suffix(".json"), json.dumps(artifacts.sealed(document), allow_nan=False) + "\n")

    def _place(self, name: str) -> Path:
        """Return where a system is kept; its name may hold anything, so the file is named by a hash."""
        return self.folder / hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _system(name: str, stored: Mapping[str, object], arrays: Mapping[str, object]) -> MeasuredSystem:
    numbers = stored["numbers"]
    facts = stored["replicates"]
    assert isinstance(numbers, dict) and isinstance(facts, dict)
    replicates = {
        dataset: RunReplicates(**{**own, "unseen": tuple(own["unseen"]), "drawn": arrays[f"d{i}"]})
        for i, (dataset, own) in enumerate(facts.items())
    }
    found = {
        d: {m: {s: BoardNumber(**b) for s, b in slices.items()} for m, slices in metrics.items()}
        for d, metrics in numbers.items()
    }
    listed, digests = stored["rejected"], stored["digests"]
    assert isinstance(listed, list) and isinstance(digests, dict)
    return MeasuredSystem(name, found, replicates, tuple(Rejected(**r) for r in listed), digests)
