"""Ray tasks as an executor: `RayTasks(cluster)(function, arguments)` yields results in the order of the arguments.

A task whose process or machine dies is repeated: functions are pure, so the result has the same bits. A task that
kills one process after another is reported. Where the caller stops early, the few tasks that were begun end unheard:
`ray.cancel` of a task that ends at that moment aborts the calling process (a failed check in Ray's task_manager.cc).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hitmiss.core.errors import EnvironmentFault

if TYPE_CHECKING:
    from ray import ObjectRef
from hitmiss.cluster.ray import Cluster, deaths, need_ray
from hitmiss.cluster.sending import Refusal, Sent, T, accepted, attempted

RETRIES: Final = 3
"""How often a task is repeated if its process dies."""
AHEAD: Final = 2
"""Tasks per CPU: one that runs and one that waits, so that few results are held in memory."""


class RayTasks:
    """Calls on a cluster, one CPU each."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.most = max(1, cluster.cpus) * AHEAD

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> Iterator[T]:
        """Yield the results in order, each as soon as it and those before it are ready."""
        ray = need_ray()
        task = ray.remote(_call).options(num_cpus=1, max_retries=RETRIES)
        sent = ray.put(Sent.of(function))
        waiting: deque[tuple[ObjectRef, tuple[object, ...]]] = deque()
        for given in arguments:
            waiting.append((task.remote(sent, Sent.of(given)), given))
            if len(waiting) >= self.most:
                yield self._result(*waiting.popleft())
        while waiting:
            yield self._result(*waiting.popleft())

    def _result(self, reference: ObjectRef, given: tuple[object, ...]) -> Any:
        try:
            return accepted(self.cluster.result(reference))
        except deaths(need_ray()) as error:
            what = getattr(given[0], "path", given[0]) if given else "a task"
            raise EnvironmentFault.of("workers-died", what=what, RETRIES=RETRIES + 1, error=_cause(error)) from None


def _call(function: Sent[Callable[..., T]], given: Sent[tuple[object, ...]]) -> T | Refusal:
    """Run the call in the worker."""
    return attempted(lambda: function.open()(*given.open()))


def _cause(error: BaseException) -> str:
    return "out of memory" if "OutOfMemory" in type(error).__name__ else "killed, or a crash in native code"
