"""Runs whose items are scored by the processes of a Ray cluster.

Only the process that owns the run writes it, one item at a time, so the run store is like that of a single process:
it survives the owner's death, can be resumed with or without a cluster, and holds no item twice.

    with joined("auto") as cluster, RayDetector(cluster, partial(open_detector, "model.onnx"), actors=2) as detector:
        run_detector(detector, manifest, Settings(), output="run", load=load)

Plain actors are used, not Ray Data: it is then known what an actor was doing when it died, so an item that crashes
its process can be found and left out, as with one process; and results are in the run store as soon as they exist.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from hitmiss.cluster.ray import Cluster, deaths, need_ray
from hitmiss.cluster.sending import Sent, accepted
from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.core.finding import Option
from hitmiss.detection.detector import Base, Batch, Detector
from hitmiss.detection.outputs import Outputs
from hitmiss.detection.parts import FIRST_PART, PATIENCE, Part, PartQueue, part_size
from hitmiss.detection.preparation import Failed, Prepare, Prepared, Row
from hitmiss.detection.scorer import FLOAT32, DetectorFacts, Scored, Scorer, Work
from hitmiss.detection.settings import Settings
from hitmiss.detection.worker import BatchWorker
from hitmiss.io.manifest import Manifest
from hitmiss.runs.manifest import differences
from hitmiss.runs.worker import Result, Results

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

FUTILE: Final = 10
"""The run stops after this many deaths without a completed part in between: the items are not the cause."""


class ClusterWorker(BatchWorker):
    """The work of a detector that is open in many processes: parts are handed out, and what comes back is yielded."""

    def __init__(self, detector: RayDetector, manifest: Manifest, preparation: Prepare, settings: Settings) -> None:
        super().__init__(detector, manifest, preparation, settings)
        self.processes = detector
        detector.begin(Work(preparation, settings, detector.sample_rate, manifest.positive, manifest.negative))
        self.preparation = self._prepared_elsewhere
        self._futile = 0

    def work(self, todo: Iterator[int]) -> Results:
        """Hand out parts until everything is scored."""
        most = part_size(len(self.manifest), self.processes.size)
        queue = PartQueue(todo, min(FIRST_PART, most), most)
        while queue.has_more or any(member.parts for member in self.processes.members):
            self._hand_out(queue)
            with self.clock.time("wait"):
                done = self.processes.cluster.ready(self.processes.references())
            for reference in done:
                self._take(reference, queue)
            while self._ready:
                result = self._ready.popleft()
                with self.clock.time("write"):
                    yield result

    def _hand_out(self, queue: PartQueue) -> None:
        """Give every process as many parts as it may have, the least busy first."""
        for depth in range(IN_FLIGHT):
            for member in self.processes.members:
                part = queue.next(is_idle=depth == 0) if member.takes and len(member.parts) == depth else None
                if part is not None:
                    self.processes.give(member, part, self.manifest.frame[list(part.positions)])

    def _take(self, reference: ObjectRef, queue: PartQueue) -> None:
        """Write what a process has sent, or find the cause of its death."""
        ray, member = need_ray(), self.processes.owner_of(reference)
        try:
            result = accepted(ray.get(reference))
        except ray.exceptions.RayActorError as error:
            self._drop_worker(member, queue, error)
        except deaths(ray) as error:
            self.processes.deaths += 1  # its result was lost with its machine
            self._blame([member.parts.pop(reference)], queue, error)
        else:
            if reference == member.opened:
                self.processes.admit(member, result)
            else:
                part = member.parts.pop(reference)
                self._write_down(part, result)
                queue.learn(len(part.positions), result.seconds)

    def _drop_worker(self, member: Member, queue: PartQueue, error: BaseException) -> None:
        """Handle the death of a process with a model: its sent results are valid; its next part was in progress."""
        self.processes.replace(member)
        lost: list[Part] = []
        for reference, part in member.parts.items():
            try:
                self._write_down(part, accepted(need_ray().get(reference)))
            except need_ray().exceptions.RayError:
                lost.append(part)
        self._blame(lost, queue, error)

    def _blame(self, lost: list[Part], queue: PartQueue, error: BaseException) -> None:
        self._futile += 1
        if self._futile > FUTILE:
            raise EnvironmentFault.of("workers-died/all", futile=self._futile, error=_why(error))
        for at in queue.died(lost[0], lost[1:]) if lost else ():
            self._fail(at, f"{PATIENCE} processes that scored it died ({_why(error)})")

    def _write_down(self, part: Part, scored: Scored) -> None:
        if len(scored.records) != len(part.positions):
            raise EnvironmentFault.of("worker-records", n_records=len(scored.records), n_positions=len(part.positions))
        self._futile = 0
        for activity in ("decode", "augment", "model"):
            setattr(self.clock, activity, getattr(self.clock, activity) + getattr(scored.clock, activity))
        for at, record in zip(part.positions, scored.records, strict=True):
            self._ready.append(Result(at, cast("Mapping[str, object]", record)))

    def _prepared_elsewhere(self, at: int, row: Row) -> Prepared | Failed:
        return replace(self.processes.prepare_one(row), at=at)


def _why(error: BaseException) -> str:
    """Return the reason in a few words; Ray's own messages are very long."""
    is_memory = "OutOfMemory" in type(error).__name__ or "low on memory" in str(error)
    return "out of memory" if is_memory else "killed, or a crash in native code"


IN_FLIGHT: Final = 2
"""Pending parts per process: the current one and the next, so that it does not have to wait."""
NEWS_SECONDS: Final = 20.0


@dataclass(eq=False)
class Member:
    """A process that has the detector open, and its parts, by the references of their results."""

    actor: ActorHandle
    opened: ObjectRef
    about: DetectorFacts | None = None
    parts: dict[ObjectRef, Part] = field(default_factory=dict)

    @property
    def takes(self) -> bool:
        """Whether it may get another part; a suspect is the only part of its process."""
        return self.about is not None and not any(part.deaths for part in self.parts.values())


class RayDetector(Base):
    """The detector, open in `actors` processes, `most` at most; `decoders` further ones beside each prepare items."""

    worker_class = ClusterWorker
    precision = FLOAT32

    def __init__(
        self,
        cluster: Cluster,
        opening: Callable[[], object],
        *,
        actors: int | None = None,
        decoders: int = 0,
        device: str = "auto",
        most: int | None = None,
    ) -> None:
        self.cluster = cluster
        self._ray = need_ray()
        self._needs = needs(cluster, actors, decoders, device)
        self.size = min(int(self._needs.pop("actors")), most or sys.maxsize)
        self.deaths = 0
        self._opening = self._ray.put(Sent.of(opening))
        self._work: ObjectRef | None = None
        self._about: DetectorFacts | None = None
        self.members = [self._start() for _ in range(self.size)]

    def __enter__(self) -> RayDetector:
        try:
            self._wait_for_the_first()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def identity(self) -> Mapping[str, object]:
        """What pins the detector: the same as in one process."""
        return self._about.identity if self._about is not None else {"name": self.name}

    def begin(self, work: Work) -> None:
        """Set what is common to all parts."""
        self._work = self._ray.put(Sent.of(work))

    def give(self, member: Member, part: Part, rows: pl.DataFrame) -> None:
        """Send a part to a process."""
        member.parts[member.actor.score.remote(self._work, rows)] = part

    def references(self) -> list[ObjectRef]:
        """Return all pending references."""
        opening = [member.opened for member in self.members if member.about is None]
        return opening + [reference for member in self.members for reference in member.parts]

    def owner_of(self, reference: ObjectRef) -> Member:
        """Return the process that a reference belongs to."""
        return next(m for m in self.members if reference in m.parts or reference == m.opened)

    def admit(self, member: Member, about: DetectorFacts) -> None:
        """Accept a process that has opened the detector; it must be the same detector as the others have."""
        member.about = about
        if self._about is None:
            self._about = about
            self.name, self.sample_rate, self.ragged = about.name, about.sample_rate, about.ragged
            self.labels, self.output_kind = about.labels, about.output_kind
            self.max_batch, self.layers, self.precision = about.max_batch, about.layers, about.precision
        differing = differences(dict(self._about.identity), dict(about.identity))
        if differing:
            raise UsageError.of(
                "unlike-machines", host=about.host, host_2=self._about.host, differing="; ".join(differing)
            )

    def replace(self, member: Member) -> None:
        """Replace a dead process, without dismissing it: that would contact the head node, which may be gone too."""
        self.deaths += 1
        self.cluster.reach()
        self.members[self.members.index(member)] = self._start()

    def prepare_one(self, row: Row) -> Prepared | Failed:
        """Prepare one item somewhere on the cluster."""
        found: Prepared | Failed = self.ask("prepare", row)
        return found

    def outputs(self, batch: Batch) -> Outputs:
        """Return the outputs of one batch, from any of the processes."""
        found: Outputs = self.ask("outputs", batch)
        return found

    def in_float32(self) -> Detector | None:
        """Return the detector in float32, if it uses a lower precision."""
        return None if self.precision == FLOAT32 else InFloat32(self)

    def prepare(self, batch: Batch) -> Batch:
        """Return the batch unchanged: the process that has the model prepares it."""
        return batch

    def close(self) -> None:
        """Stop all processes."""
        for member in self.members:
            self._dismiss(member)

    def _start(self) -> Member:
        # Ray could restart a dead actor by itself; this is done here instead, so that the cause can be found first.
        actor = self._ray.remote(Scorer).options(max_restarts=0, max_task_retries=0, **self._needs).remote()
        return Member(actor, actor.open.remote(self._opening))

    def _dismiss(self, member: Member) -> None:
        if self._ray.is_initialized() and not self.cluster.is_lost:
            self._ray.kill(member.actor)

    def ask(self, method: str, given: object) -> Any:
        """Return the answer of any of the processes; one that dies on the question is not asked again."""
        actor = next((member.actor for member in self.members if member.about is not None), None)
        if actor is None:
            raise EnvironmentFault.of("worker-not-open")
        try:
            return accepted(self.cluster.result(getattr(actor, method).remote(self._work, given)))
        except self._ray.exceptions.RayActorError as error:
            raise EnvironmentFault.of("workers-died/one", error=last_line(error)) from None

    def _wait_for_the_first(self) -> None:
        began, has_warned = time.monotonic(), False
        while True:
            done = self.cluster.ready([m.opened for m in self.members])
            if done:
                self.admit(self.owner_of(done[0]), self._opened(done[0]))
                return
            if not has_warned and time.monotonic() - began > NEWS_SECONDS:
                has_warned = True
                warnings.warn(f"no process has opened the detector yet; the cluster has {self.cluster}", stacklevel=2)

    def _opened(self, reference: ObjectRef) -> DetectorFacts:
        try:
            return accepted(self._ray.get(reference))  # type: ignore[no-any-return]
        except self._ray.exceptions.RayActorError as error:
            raise EnvironmentFault.of("cluster-cannot-open", error=last_line(error)) from None

    def words(self) -> str:
        """Return a summary of the work, to be reported afterwards."""
        hosts = {member.about.host for member in self.members if member.about is not None}
        words = f"scored by {self.size} process{'es' * (self.size > 1)} on {len(hosts)} machine{'s' * (len(hosts) > 1)}"
        return words + (f"; {self.deaths} died, and others did their work" if self.deaths else "")


class InFloat32(Base):
    """The detector of a cluster in float32: any of its processes opens it once more, to measure the effect of rounding."""

    def __init__(self, processes: RayDetector) -> None:
        self._processes, self.name, self.sample_rate = processes, processes.name, processes.sample_rate

    def outputs(self, batch: Batch) -> Outputs:
        """Return the outputs of one batch."""
        found: Outputs = self._processes.ask("outputs_in_float32", batch)
        return found


def needs(cluster: Cluster, actors: int | None, decoders: int, device: str) -> dict[str, float]:
    """Return the number of processes and the resources of each: a GPU if there are any, else its share of the CPUs.

    >>> needs(Cluster("auto", cpus=8, gpus=0, machines=1), None, 0, "auto")
    {'actors': 8, 'num_cpus': 1, 'num_gpus': 0}
    >>> needs(Cluster("auto", cpus=8, gpus=0, machines=1), None, 1, "auto")
    {'actors': 4, 'num_cpus': 2, 'num_gpus': 0}
    >>> needs(Cluster("head:6379", cpus=64, gpus=4, machines=2), None, 12, "auto")
    {'actors': 4, 'num_cpus': 13, 'num_gpus': 1}
    """
    if device.startswith("cuda") and not cluster.gpus:
        raise UsageError.of("no-cuda/cluster", cluster=cluster)
    on_gpu = cluster.gpus > 0 and device != "cpu"
    n = actors if actors is not None else cluster.gpus if on_gpu else max(1, cluster.cpus // (1 + decoders))
    if n < 1:
        raise UsageError.of("out-of-range/least", name=Option("actors"), least=1, found=actors)
    share = max(1, cluster.cpus // n)
    return {"actors": n, "num_cpus": min(1 + decoders, share) if on_gpu else share, "num_gpus": int(on_gpu)}


def last_line(error: BaseException) -> str:
    """Return the last line of a Ray error, after its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
