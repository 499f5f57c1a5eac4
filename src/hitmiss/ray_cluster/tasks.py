"""Ray tasks as an executor: `RayTasks(cluster)(function, arguments)` gives the results in the order of the arguments.

A task whose process or machine dies is done again: functions are pure, so the result has the same bits. What kills
process after process is named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from hitmiss.errors import EnvironmentFault
from hitmiss.ray_cluster.carrying import Refusal, Sent, accepted, attempted
from hitmiss.ray_cluster.connection import Cluster, deaths, need_ray

T = TypeVar("T")
RETRIES: Final = 3
"""How often a task is tried again when the process that has it dies."""
AHEAD: Final = 2
"""Tasks under way for each CPU: one that runs and one that waits, so few results lie about."""


class RayTasks:
    """Calls on a cluster, one CPU each."""

    def __init__(self, cluster: Cluster) -> None:
        self.most = max(1, cluster.cpus) * AHEAD

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        """The results in order, each as soon as it and those before it are there."""
        ray = need_ray()
        task = ray.remote(_call).options(num_cpus=1, max_retries=RETRIES)
        sent = ray.put(Sent.of(function))
        waiting: deque[tuple[Any, tuple[Any, ...]]] = deque()
        try:
            for given in arguments:
                waiting.append((task.remote(sent, Sent.of(given)), given))
                if len(waiting) >= self.most:
                    yield _result(ray, *waiting.popleft())
            while waiting:
                yield _result(ray, *waiting.popleft())
        finally:
            for reference, _ in waiting if ray.is_initialized() else ():  # the caller gave up: nobody wants these
                ray.cancel(reference, force=True)


def _call(function: Sent[Callable[..., T]], given: Sent[tuple[Any, ...]]) -> T | Refusal:
    """In the worker."""
    return attempted(lambda: function.open()(*given.open()))


def _result(ray: Any, reference: Any, given: tuple[Any, ...]) -> Any:
    try:
        return accepted(ray.get(reference))
    except deaths(ray) as error:
        what = getattr(given[0], "path", given[0]) if given else "a task"
        raise EnvironmentFault(
            f"{what}: {RETRIES + 1} processes died over it ({_cause(error)}); each needs the memory of one shard"
        ) from None


def _cause(error: BaseException) -> str:
    return "out of memory" if "OutOfMemory" in type(error).__name__ else "killed, or a crash in native code"
