"""The loop itself, with workers that do as they are told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import pytest

from hitmiss.core.errors import DataError, IncompleteRun
from hitmiss.core.run_spec import RunSpec
from hitmiss.runs.loop import REFUSALS, run_loop
from hitmiss.runs.progress import Progress
from hitmiss.runs.worker import InMemory, Result, Results

ITEMS = [f"i{k}" for k in range(200)]


class Toy:
    """Takes `ahead` positions at a time and yields their results in reverse order."""

    kind, config = "toy", {"a": 1}
    grows: Collection[str] = ()
    items = ITEMS

    def __init__(self, answer: Callable[[int], Result], ahead: int = 1) -> None:
        self.answer, self.ahead = answer, ahead
        self.taken: list[int] = []
        self.ready: list[Result] = []
        self.is_closed = False

    def work(self, todo: Iterator[int]) -> Results:
        try:
            more = True
            while more:
                waiting = []
                for at in todo:
                    waiting.append(at)
                    if len(waiting) == self.ahead:
                        break
                more = bool(waiting)
                self.taken += waiting
                self.ready = [self.answer(at) for at in waiting]
                while self.ready:
                    yield self.ready.pop()
        finally:
            self.is_closed = True

    def leftovers(self) -> list[Result]:
        return self.ready

    def changed_inputs(self, records: Iterator[tuple[int, dict[str, object]]]) -> list[str]:
        return [str(at) for at, _ in records if at < 0]

    def details(self) -> str:
        return ""


def good(at: int) -> Result:
    return Result(at, {"score": at}, tokens=10, cost=0.5)


def test_everything_is_done_once_in_any_order() -> None:
    worker, store = Toy(good, 7), InMemory(ITEMS)
    end = run_loop(worker, store, RunSpec())
    assert end.state == "complete" and sorted(worker.taken) == list(range(200)) and worker.is_closed
    assert {at: record["score"] for at, record in store.records.items()} == {at: at for at in range(200)}
    assert run_loop(Toy(good), store, RunSpec()).progress.n_done == 0


@pytest.mark.parametrize("ahead", [1, 8])
@pytest.mark.parametrize(
    ("spec", "least", "slack"),
    [
        (RunSpec(max_calls=30), 30, 0),
        (RunSpec(max_total_tokens=300), 30, 1),
        (RunSpec(max_cost=15.0), 30, 1),
    ],
)
def test_a_budget_overshoots_by_what_is_under_way_at_most(spec: RunSpec, least: int, slack: int, ahead: int) -> None:
    store = InMemory(ITEMS)
    end = run_loop(Toy(good, ahead), store, spec)
    assert end.state == "over budget" and least <= store.n_done <= least + slack * (ahead - 1)
    with pytest.raises(IncompleteRun, match="stopped at"):
        end.require_hope("here")
    assert run_loop(Toy(good, ahead), store, RunSpec()).state == "complete"


@pytest.mark.parametrize("spec", [RunSpec(max_cost=5.0), RunSpec(max_total_tokens=100)])
def test_a_budget_that_cannot_be_metered_ends_the_run(spec: RunSpec) -> None:
    store = InMemory(ITEMS)
    worker = Toy(lambda at: Result(at, {"score": at}, is_metered=at != 30))
    end = run_loop(worker, store, spec)
    assert end.state == "over budget" and store.n_done == 31
    with pytest.raises(IncompleteRun, match="which cannot be kept"):
        end.require_hope("here")
    assert run_loop(worker, store, RunSpec()).state == "complete", "without a budget nothing needs to be known"


def test_failures_before_the_first_success_end_the_run() -> None:
    worker = Toy(lambda at: Result(at, {"error": "no"}))
    end = run_loop(worker, InMemory(ITEMS), RunSpec())
    assert (end.state, end.progress.n_failed, worker.is_closed) == ("hopeless", 20, True)
    with pytest.raises(DataError, match="the first 20 items all failed"):
        end.require_hope("here")
    waiting = Toy(lambda at: Result(at, {"error": "no"}, is_decisive=False) if at < 199 else good(at))
    assert run_loop(waiting, InMemory(ITEMS), RunSpec()).state == "complete", "good ones may still be under way"


@pytest.mark.parametrize(
    ("fault", "n"),
    [("item", 200), ("service", 50 + 20), ("refused", 50 + REFUSALS)],
    ids=["item", "service", "key"],
)
def test_failures_of_a_service_end_a_run_that_had_begun_well(fault: str, n: int) -> None:
    def answer(at: int) -> Result:
        return good(at) if at < 50 else Result(at, {"error": "no"}, fault)  # type: ignore[arg-type]

    store = InMemory(ITEMS)
    end = run_loop(Toy(answer), store, RunSpec())
    assert store.n_done == n and end.state == ("complete" if n == 200 else "hopeless")
    if n < 200:
        with pytest.raises(IncompleteRun, match=r"--resume --retry|retry=True"):
            end.require_hope("here")


@pytest.mark.parametrize("patience", [20, 7, 0])
@pytest.mark.parametrize("first", [0, 50])
def test_answers_that_cannot_be_used_end_a_run(patience: int, first: int) -> None:
    def answer(at: int) -> Result:
        return good(at) if at < first else Result(at, {"answer": "I cannot help with that."}, "unread")

    store = InMemory(ITEMS)
    end = run_loop(Toy(answer), store, RunSpec(patience=patience))
    assert store.n_done == (first + patience if patience else 200)
    if patience:
        with pytest.raises(IncompleteRun, match="I cannot help with that"):
            end.require_hope("here")
    mixed = Toy(lambda at: good(at) if at % 20 == 19 else Result(at, {"answer": ""}, "unread"))
    assert run_loop(mixed, InMemory(ITEMS), RunSpec()).state == "complete", "one of twenty can be used"


def test_answers_and_failures_of_a_service_count_together() -> None:
    def answer(at: int) -> Result:
        return Result(at, {"error": "500"}, "service") if at % 2 else Result(at, {"answer": ""}, "unread")

    store = InMemory(ITEMS)
    assert run_loop(Toy(answer), store, RunSpec()).state == "hopeless" and store.n_done == 20


def test_a_refusal_before_the_first_success_is_enough() -> None:
    store = InMemory(ITEMS)
    end = run_loop(Toy(lambda at: Result(at, {"error": "no"}, "refused")), store, RunSpec())
    assert end.state == "hopeless" and store.n_done == 1


@pytest.mark.parametrize("where", ["store", "worker", "report"])
def test_an_interruption_keeps_what_was_ready(where: str) -> None:
    class Interrupted(InMemory):
        def add(self, at: int, record: Mapping[str, object]) -> None:
            super().add(at, record)
            if where == "store" and self.n_done == 10:
                raise KeyboardInterrupt

    def answer(at: int) -> Result:
        if where == "worker" and at == 16:
            raise KeyboardInterrupt
        return good(at)

    def report(progress: Progress) -> None:
        if where == "report" and progress.n_done == 10:
            raise KeyboardInterrupt

    store, worker = Interrupted(ITEMS), Toy(answer, 8)
    with pytest.raises(KeyboardInterrupt):
        run_loop(worker, store, RunSpec(), report)
    assert worker.is_closed and sorted(store.records) == list(range(16)), "what was answered is kept"


def test_retry_takes_what_failed() -> None:
    store = InMemory(ITEMS)
    run_loop(Toy(lambda at: Result(at, {"error": "no"}) if at % 9 == 4 else good(at)), store, RunSpec())
    assert run_loop(Toy(good), store, RunSpec()).progress.n_done == 0
    worker = Toy(good)
    end = run_loop(worker, store, RunSpec(resume=True, retry=True))
    assert worker.taken == list(range(4, 200, 9)) and not store.has_error.any()
    assert end.progress.n_before + end.progress.n_done == 200
