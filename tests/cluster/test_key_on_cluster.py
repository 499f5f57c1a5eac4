"""Scores with a key on a real cluster: each process reads the key for itself, and the figures are those of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from hitmiss.cluster.ray import Cluster
from hitmiss.cluster.tasks import RayTasks
from hitmiss.core.errors import DataError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore.stream import evaluate_streamed

pytestmark = pytest.mark.extras
ASKED: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "bootstrap": 40, "unit": "speaker"}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """Scores of two systems in three files, and the key of them."""
    folder, rng, n = tmp_path_factory.mktemp("sides"), np.random.default_rng(11), 1200
    real = rng.random(n) < 0.3
    whole = pl.DataFrame(
        {
            "item": [f"u{i}" for i in range(n)],
            "one": np.round(rng.normal(size=n) + 2 * real, 2),
            "two": rng.normal(size=n) + real,
            "label": np.where(real, "bonafide", "spoof"),
            "codec": rng.choice(["NONE", "C01"], n),
            "speaker": rng.choice([f"S{i}" for i in range(11)], n),
        }
    )
    paths = [folder / f"part-{k}.parquet" for k in range(3)]
    for k, path in enumerate(paths):
        whole.select("item", "one", "two")[k::3].write_parquet(path)
    whole.drop("one", "two").sample(fraction=1.0, shuffle=True, seed=2).write_csv(folder / "key.tsv", separator="\t")
    return list(map(str, paths)), str(folder / "key.tsv")


def test_figures_are_those_of_memory(cluster: Cluster, sides: tuple[list[str], str]) -> None:
    reading = {"score_columns": ("one", "two")}
    there = evaluate_streamed(
        sides[0], "asvspoof5", key=sides[1], run=RayTasks(cluster), reading=ReadSpec(**reading), **ASKED
    )
    memory = evaluate(*sides, "asvspoof5", **ASKED, **reading)
    assert len(memory) > 12 and there.results.estimates == memory.estimates


def test_an_id_without_a_score_is_told_with_the_row_of_the_key(cluster: Cluster, sides: tuple[list[str], str]) -> None:
    with pytest.raises(DataError, match="400 ids of the key without a score") as caught:
        evaluate_streamed(
            sides[0][1:],
            "asvspoof5",
            key=sides[1],
            run=RayTasks(cluster),
            reading=ReadSpec(columns={"score": "one"}),
            **ASKED,
        )
    assert {fault.file for fault in caught.value.faults} == {"key.tsv"}
