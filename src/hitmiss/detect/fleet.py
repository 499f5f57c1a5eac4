"""A detector that is open in many processes of a Ray cluster: to the caller it is one detector, with a loop of its own.

    with joined("auto") as cluster, Fleet(cluster, partial(open_detector, "model.onnx"), actors=2) as detector:
        run_detector(detector, manifest, Settings(), output="run", load=load)

Plain actors, not Ray Data: what an actor was doing when it died is known here, so an item that kills its process can be
found and left out, as in one process; and results are in the run store as soon as they are made.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

import polars as pl

from hitmiss.detect.detector import Base, Batch
from hitmiss.detect.on_cluster import ClusterLoop
from hitmiss.detect.parts import Part
from hitmiss.detect.scorer import About, Scorer, Tallying, Work, make_ready
from hitmiss.errors import EnvironmentFault, UsageError
from hitmiss.io.runs import differences
from hitmiss.ray_cluster.carrying import Sent, accepted
from hitmiss.ray_cluster.connection import Cluster, need_ray

IN_FLIGHT: Final = 2
"""Parts before each process: the one under way and the next, so that it need not wait."""
NEWS_SECONDS: Final = 20.0


@dataclass(eq=False)
class Member:
    """A process of the fleet, and the parts that it has, by the references of their results."""

    actor: Any
    opened: Any
    about: About | None = None
    parts: dict[Any, Part] = field(default_factory=dict)

    @property
    def takes(self) -> bool:
        """Whether it may have another part; a suspect is alone with its process."""
        return self.about is not None and not any(part.deaths for part in self.parts.values())


class Fleet(Base):
    """The detector, open in `actors` processes, `most` at most; `decoders` others prepare items where that is asked for.

    `tallying`, where it is set, makes a tally of every part as soon as it is scored.
    """

    loop_class = ClusterLoop

    def __init__(
        self,
        cluster: Cluster,
        opening: Callable[[], Any],
        *,
        actors: int | None = None,
        decoders: int = 0,
        device: str = "auto",
        most: int | None = None,
    ) -> None:
        self.cluster, self.decoders = cluster, decoders
        self._ray = need_ray()
        self._needs = needs(cluster, actors, decoders, device)
        self.size = min(int(self._needs.pop("actors")), most or sys.maxsize)
        self.tallying: Tallying | None = None
        self.deaths = 0
        self._opening = self._ray.put(Sent.of(opening))
        self._work: Any = None
        self._about: About | None = None
        self.members = [self._hire() for _ in range(self.size)]

    def __enter__(self) -> Fleet:
        try:
            self._wait_for_the_first()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def identity(self) -> Mapping[str, Any]:
        """What pins the detector: the same as in one process."""
        return self._about.identity if self._about is not None else {"name": self.name}

    @property
    def in_flight(self) -> int:
        """Parts that a process has before it: enough for all who decode, and no more, so that memory is bounded."""
        return max(IN_FLIGHT, 1 + -(-self.decoders // self.size))

    def begin(self, work: Work) -> None:
        """Say what the parts are parts of."""
        self._work = self._ray.put(Sent.of(work))

    def give(self, member: Member, part: Part, rows: pl.DataFrame) -> None:
        """Send a part to a process, by way of one that decodes where there are such."""
        ready = self._decode().remote(self._work, rows) if self.decoders else None
        member.parts[member.actor.score.remote(self._work, rows, ready)] = part

    def references(self) -> list[Any]:
        """Everything that is waited for."""
        opening = [member.opened for member in self.members if member.about is None]
        return opening + [reference for member in self.members for reference in member.parts]

    def owner_of(self, reference: Any) -> Member:
        """The process that a reference belongs to."""
        return next(m for m in self.members if reference in m.parts or reference == m.opened)

    def admit(self, member: Member, about: About) -> None:
        """A process has opened the detector; it must be the detector that the others have."""
        member.about = about
        if self._about is None:
            self._about = about
            self.name, self.sample_rate, self.ragged = about.name, about.sample_rate, about.ragged
            self.labels, self.output_kind = about.labels, about.output_kind
            self.max_batch, self.layers = about.max_batch, about.layers
        differing = differences(dict(self._about.identity), dict(about.identity))
        if differing:
            raise UsageError(
                f"{about.host} and {self._about.host} do not open the same detector: {'; '.join(differing)}; "
                f"give --device and --precision, and the same files everywhere"
            )

    def replace(self, member: Member) -> None:
        """A process is gone: hire another."""
        self.deaths += 1
        self._dismiss(member)
        self.members[self.members.index(member)] = self._hire()

    def prepare_one(self, row: Mapping[str, Any]) -> Any:
        """One item made ready somewhere on the cluster."""
        return self._asked("prepare", row)

    def outputs(self, batch: Batch) -> Any:
        """The outputs of one batch, from any of the processes."""
        return self._asked("outputs", batch)

    def prepare(self, batch: Batch) -> Batch:
        """As it is: the process that has the model prepares it."""
        return batch

    def close(self) -> None:
        """Send everybody home."""
        for member in self.members:
            self._dismiss(member)

    def _hire(self) -> Member:
        # Ray would start a dead actor again by itself; we do, so that the blame can be settled first.
        actor = self._ray.remote(Scorer).options(max_restarts=0, max_task_retries=0, **self._needs).remote()
        return Member(actor, actor.open.remote(self._opening))

    def _dismiss(self, member: Member) -> None:
        if self._ray.is_initialized():
            self._ray.kill(member.actor)

    def _decode(self) -> Any:
        has_room = self.cluster.cpus > self.size * self._needs["num_cpus"]
        return self._ray.remote(make_ready).options(num_cpus=int(has_room), max_retries=0)

    def _asked(self, method: str, given: Any) -> Any:
        """What any of the processes answers; one that dies over the question is not asked again."""
        actor = next((member.actor for member in self.members if member.about is not None), None)
        if actor is None:
            raise EnvironmentFault("no process of the cluster has the detector open")
        try:
            return accepted(self._ray.get(getattr(actor, method).remote(self._work, given)))
        except self._ray.exceptions.RayActorError as error:
            raise EnvironmentFault(f"a process of the cluster died: {last_line(error)}") from None

    def _wait_for_the_first(self) -> None:
        began, told = time.monotonic(), False
        while True:
            done, _ = self._ray.wait([m.opened for m in self.members], num_returns=1, timeout=1.0)
            if done:
                self.admit(self.owner_of(done[0]), self._opened(done[0]))
                return
            if not told and time.monotonic() - began > NEWS_SECONDS:
                told = True
                warnings.warn(f"no process has opened the detector yet; the cluster has {self.cluster}", stacklevel=2)

    def _opened(self, reference: Any) -> About:
        try:
            return accepted(self._ray.get(reference))  # type: ignore[no-any-return]
        except self._ray.exceptions.RayActorError as error:
            raise EnvironmentFault(
                f"the detector cannot be opened on the cluster: {last_line(error)}; hitmiss and what the detector needs "
                f"must be installed on every machine"
            ) from None

    def words(self) -> str:
        """What to say about the work afterwards."""
        hosts = {member.about.host for member in self.members if member.about is not None}
        words = f"scored by {self.size} process{'es' * (self.size > 1)} on {len(hosts)} machine{'s' * (len(hosts) > 1)}"
        return words + (f"; {self.deaths} died, and others did their work" if self.deaths else "")


def needs(cluster: Cluster, actors: int | None, decoders: int, device: str) -> dict[str, float]:
    """How many processes there are, and what each asks of the cluster: a GPU where there are any, else its share of the CPUs.

    >>> needs(Cluster("auto", cpus=8, gpus=0, machines=1), None, 0, "auto")
    {'actors': 8, 'num_cpus': 1, 'num_gpus': 0}
    >>> needs(Cluster("auto", cpus=8, gpus=0, machines=1), 2, 2, "auto")
    {'actors': 2, 'num_cpus': 3, 'num_gpus': 0}
    >>> needs(Cluster("head:6379", cpus=64, gpus=4, machines=2), None, 16, "auto")
    {'actors': 4, 'num_cpus': 1, 'num_gpus': 1}
    """
    if device.startswith("cuda") and not cluster.gpus:
        raise UsageError(f"the cluster has no GPU ({cluster}); say --device cpu, or leave it out")
    on_gpu = cluster.gpus > 0 and device != "cpu"
    free = max(1, cluster.cpus - decoders)
    n = actors or (cluster.gpus if on_gpu else free)
    if n < 1:
        raise UsageError(f"--actors is at least 1; found {actors}")
    return {"actors": n, "num_cpus": 1 if on_gpu else max(1, free // n), "num_gpus": int(on_gpu)}


def last_line(error: BaseException) -> str:
    """What an error of Ray says in the end, after its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
