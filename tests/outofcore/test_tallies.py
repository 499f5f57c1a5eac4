"""Tallies of shards: merged in any tree they are the same; what does not belong together is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.core.score_keys import bins_of, keys_of, scores_of
from hitmiss.outofcore.binned import Binned, KeptKeys, merge_binned
from hitmiss.outofcore.shard_tally import ShardFact, ShardTally, cells_of, merge_tallies

CELLS = (("bonafide", "C01"), ("bonafide", "NONE"), ("spoof", "C01"))


def tally(number: int, trials: list[tuple[int, float]]) -> ShardTally:
    """A shard with trials given as (cell, score)."""
    cells = {}
    for at, cell in enumerate(CELLS):
        keys, counts = np.unique(keys_of([s for c, s in trials if c == at]), return_counts=True)
        if len(keys):
            cells[cell] = Binned(keys, counts.astype(np.int64))
    ids = Binned(np.sort(np.array([hash((number, i)) & 2**63 - 1 for i in range(len(trials))], dtype=np.uint64)))
    return ShardTally((ShardFact(f"s{number}", f"{number:064x}", len(trials), 9),), cells, ids)


def listed(kept: KeptKeys) -> tuple[list[int], list[int]]:
    """The keys and how often each occurs."""
    assert isinstance(kept, Binned)
    return kept.bins.tolist(), kept.each.tolist()


def flat(t: ShardTally) -> object:
    """Everything that a tally says, comparable."""
    cells = {cell: listed(kept) for cell, kept in sorted(t.cells.items())}
    return (
        t.shards,
        cells,
        None if t.ids is None else listed(t.ids),
        t.findings,
        dict(t.noted),
    )


SHARDS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.floats(allow_nan=False)), max_size=12), min_size=1, max_size=6
)


@given(shards=SHARDS, order=st.randoms(use_true_random=False))
def test_any_tree_of_mergers_in_any_order_is_the_same(shards: list[list[tuple[int, float]]], order: object) -> None:
    parts = [tally(i, trials) for i, trials in enumerate(shards)]
    whole = flat(merge_tallies(parts))
    while len(parts) > 1:
        order.shuffle(parts)  # type: ignore[attr-defined]
        take = order.randint(2, len(parts))  # type: ignore[attr-defined]
        parts = [merge_tallies(parts[:take]), *parts[take:]]
    assert flat(parts[0]) == whole
    counted = sum(sum(b) for _, b in whole[1].values())  # type: ignore[index]
    assert counted == sum(map(len, shards))


def test_what_does_not_belong_together_is_refused() -> None:
    a, b = tally(0, [(0, 1.0)]), tally(1, [(1, 2.0)])
    with pytest.raises(DataError, match="s0 has the same content as s0: the shard was given twice"):
        merge_tallies([a, b, a])
    with pytest.raises(DataError, match="no tally to merge"):
        merge_tallies([])


@given(st.lists(st.floats(allow_nan=False), min_size=2))
def test_keys_stand_in_the_order_of_scores(scores: list[float]) -> None:
    keys = keys_of(scores)
    assert scores_of(keys).tolist() == [s + 0.0 for s in scores]
    for a, b, i, j in zip(scores, scores[1:], keys.tolist(), keys.tolist()[1:], strict=False):
        assert (a < b) == (i < j) and (a == b) == (i == j)
        assert a > b or bins_of(keys, 20)[scores.index(a)] <= bins_of(keys, 20)[scores.index(b)]


@pytest.mark.parametrize("distinct", [2, 300, 5_000, 100_000])
@pytest.mark.parametrize("n_cells", [1, 3, 400])
@pytest.mark.parametrize("order", ["mixed", "ascending", "late"])
def test_scores_are_counted_per_cell_however_many_share_one(distinct: int, n_cells: int, order: str) -> None:
    rng, n = np.random.default_rng(distinct + n_cells), 60_000
    score = np.concatenate([rng.integers(-distinct // 2, distinct // 2, n) / 16, [0.0, -0.0, np.inf, -np.inf]])
    if order == "ascending":
        score = np.sort(score)
    if order == "late":  # scores that are shared first, then others
        score = np.concatenate([np.repeat(1.5, n), score + rng.random(len(score))])
    code = rng.integers(0, n_cells, len(score))
    cells = [(str(at),) for at in range(n_cells)]
    found = cells_of(cells, code, score)
    counted = {cell: merge_binned([own]) for cell, own in found.items()}
    made = {
        (cell[0], s): n
        for cell, own in counted.items()
        for s, n in zip(scores_of(own.bins).tolist(), own.each.tolist(), strict=True)
    }
    assert made == Counter(zip(map(str, code.tolist()), score.tolist(), strict=True))
