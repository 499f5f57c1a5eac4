"""The book of parts: whatever dies and whenever, each item is done once or rightly given up."""

from __future__ import annotations

import random
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from hitmiss.detection.parts import PATIENCE, Part, PartQueue, part_size


@given(
    n=st.integers(0, 60),
    size=st.integers(1, 20),
    processes=st.integers(1, 4),
    deadly=st.sets(st.integers(0, 59), max_size=3),
    lost=st.integers(0, 6),
    seed=st.integers(0, 2**32),
)
def test_every_item_is_done_once_or_killed_thrice(
    n: int, size: int, processes: int, deadly: set[int], lost: int, seed: int
) -> None:
    """Processes with two parts before them, of which some die by an item and some by bad luck."""
    rng, book = random.Random(seed), PartQueue(iter(range(n)), size)
    desks: list[deque[Part]] = [deque() for _ in range(processes)]
    done: list[int] = []
    given_up: list[int] = []
    kills = dict.fromkeys(range(n), 0)
    unlucky = lost
    while book.has_more or any(desks):
        for desk in desks:
            while len(desk) < 2 and not any(part.deaths for part in desk):
                part = book.next(is_idle=not desk)
                if part is None:
                    break
                desk.append(part)
        desk = rng.choice([desk for desk in desks if desk])
        guilty = [at for at in desk[0].positions if at in deadly]
        is_unlucky = unlucky > 0 and not guilty and rng.random() < 0.3
        if guilty or is_unlucky:
            unlucky -= is_unlucky
            kills |= {at: kills[at] + 1 for at in desk[0].positions}
            given_up += book.died(desk[0], list(desk)[1:])
            desk.clear()
        else:
            done += desk.popleft().positions
    assert sorted(done + given_up) == list(range(n)), "none lost, none doubled"
    assert deadly & set(range(n)) <= set(given_up), "what kills is never done"
    assert all(kills[at] >= PATIENCE for at in given_up), "and what is given up has killed"
    if not lost:
        assert set(given_up) <= deadly, "without bad luck nobody innocent is given up"


def test_a_suspect_is_alone_with_its_process() -> None:
    book = PartQueue(iter(range(4)), 2)
    first = book.next(is_idle=True)
    assert first is not None and book.died(first) == ()
    beside = book.next(is_idle=False)
    assert beside is not None and beside.positions == (2, 3), "a busy process gets what is fresh"
    assert book.next(is_idle=False) is None and book.has_more
    suspect = book.next(is_idle=True)
    assert suspect == Part((0, 1), 1)
    assert book.died(suspect) == () and [book.next(is_idle=True) for _ in range(2)] == [Part((0,), 1), Part((1,), 1)]


def test_parts_are_small_enough_to_end_together_and_to_be_done_again() -> None:
    for n in (1, 10, 1000, 10**6):
        for processes in (1, 2, 64):
            size = part_size(n, processes)
            assert size == 1 or (size > 1 and n / size > 4 * processes)
