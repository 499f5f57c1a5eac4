"""The loop of a run whose items are scored by the processes of a cluster: hand out parts, write what comes back.

The process that owns the run is the only one that writes it, an item at a time, so a run store from a cluster is that of
one process: it survives the owner's death, is resumed with or without a cluster, and holds no item twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from hitmiss.detect.feeding import Failed, Prepare, Prepared
from hitmiss.detect.parts import PATIENCE, Book, Part, part_size
from hitmiss.detect.scorer import LAYERS, Scored, Work
from hitmiss.detect.scoring import Loop
from hitmiss.detect.settings import Report, Settings
from hitmiss.errors import EnvironmentFault
from hitmiss.io.manifest import Manifest
from hitmiss.io.runs import Run
from hitmiss.io.segments import replace_file
from hitmiss.ray_cluster.carrying import accepted
from hitmiss.ray_cluster.connection import deaths, need_ray

if TYPE_CHECKING:
    from hitmiss.detect.fleet import Fleet, Member

TALLIES: Final = "tallies"
"""The folder of a run with the tallies of its parts, where they were asked for."""
FUTILE: Final = 10
"""So many deaths without a part done between them, and the run stops: it is not the items."""
WAIT_SECONDS: Final = 1.0


class ClusterLoop(Loop):
    """The owner's work on a run."""

    def __init__(
        self,
        run: Run,
        fleet: Fleet,
        manifest: Manifest,
        preparation: Prepare,
        settings: Settings,
        report: Report,
    ) -> None:
        super().__init__(run, fleet, manifest, preparation, settings, report)
        self.fleet = fleet
        alone = replace(settings, workers=0, resume=False, join=False, retry=False)
        classes = (manifest.positive, manifest.negative)
        fleet.begin(Work(preparation, alone, fleet.sample_rate, *classes, fleet.tallying))
        self.preparation = self._prepared_elsewhere
        self._futile = 0

    def score_all(self) -> None:
        """Score every item that nobody has scored."""
        if not self.run.is_done or self.settings.retry:
            n_left = len(self.manifest) if self.settings.retry else len(self.manifest) - self.run.n_done
            try:
                self._work(Book(self.run.todo(self.settings.retry), part_size(n_left, self.fleet.size)))
            finally:
                if self.keeper is not None:
                    self.keeper.close()
        self.report(self.clock)

    def _work(self, book: Book) -> None:
        ray = need_ray()
        while book.has_more or any(member.parts for member in self.fleet.members):
            self._hand_out(book)
            with self.clock.time("wait"):
                done, _ = ray.wait(self.fleet.references(), num_returns=1, timeout=WAIT_SECONDS)
            for reference in done:
                self._take(reference, book)
            self.report(self.clock)

    def _hand_out(self, book: Book) -> None:
        """Give every process what it may have, the least busy first."""
        for depth in range(self.fleet.in_flight):
            for member in self.fleet.members:
                part = book.next(is_idle=depth == 0) if member.takes and len(member.parts) == depth else None
                if part is not None:
                    self.fleet.give(member, part, self.manifest.frame[list(part.positions)])

    def _take(self, reference: Any, book: Book) -> None:
        """Write what a process has sent, or find out what was to blame for its death."""
        ray, member = need_ray(), self.fleet.owner_of(reference)
        try:
            result = accepted(ray.get(reference))
        except ray.exceptions.RayActorError as error:
            self._bury(member, book, error)
        except deaths(ray) as error:
            self.fleet.deaths += 1  # one that decodes
            self._blame([member.parts.pop(reference)], book, error)
        else:
            if reference == member.opened:
                self.fleet.admit(member, result)
            else:
                self._write_down(member.parts.pop(reference), result)

    def _bury(self, member: Member, book: Book, error: BaseException) -> None:
        """A process with a model died: what it had sent is good, and of the rest the first part was under way."""
        self.fleet.replace(member)
        lost: list[Part] = []
        for reference, part in member.parts.items():
            try:
                self._write_down(part, accepted(need_ray().get(reference)))
            except need_ray().exceptions.RayError:
                lost.append(part)
        self._blame(lost, book, error)

    def _blame(self, lost: list[Part], book: Book, error: BaseException) -> None:
        self._futile += 1
        if self._futile > FUTILE:
            raise EnvironmentFault(
                f"{self._futile} processes died one after the other and none did its work ({_why(error)}); "
                f"what was scored is safe: go on with --resume, with fewer --actors or a smaller --batch-seconds"
            )
        for at in book.died(lost[0], lost[1:]) if lost else ():
            self.fail(at, f"{PATIENCE} processes that scored it died ({_why(error)})")

    def _write_down(self, part: Part, scored: Scored) -> None:
        if len(scored.records) != len(part.positions):
            raise EnvironmentFault(f"a process gave {len(scored.records)} records for {len(part.positions)} items")
        self._futile = 0
        for activity in ("decode", "augment", "model"):
            setattr(self.clock, activity, getattr(self.clock, activity) + getattr(scored.clock, activity))
        with self.clock.time("write"):
            for at, record in zip(part.positions, scored.records, strict=True):
                if "error" in record:
                    self.fail(at, record["error"])
                else:
                    self.keep(at, record, record.pop(LAYERS, {}))
            if scored.tally:
                (self.run.folder / TALLIES).mkdir(exist_ok=True)
                replace_file(self.run.folder / TALLIES / f"{part.positions[0]:09d}.tally", scored.tally)

    def _prepared_elsewhere(self, at: int, row: Mapping[str, Any]) -> Prepared | Failed:
        item = self.fleet.prepare_one(row)
        return cast("Prepared | Failed", replace(item, at=at))


def _why(error: BaseException) -> str:
    """The reason in a few words; Ray's own fill a screen."""
    is_memory = "OutOfMemory" in type(error).__name__ or "low on memory" in str(error)
    return "out of memory" if is_memory else "killed, or a crash in native code"
