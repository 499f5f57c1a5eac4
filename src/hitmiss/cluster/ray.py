"""Work on a Ray cluster: join one, send calls to its workers and return results."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hitmiss._version import __version__
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, GateFailed, HitmissError, IncompleteRun, UsageError
from hitmiss.core.machine import cores

if TYPE_CHECKING:
    from ray import ObjectRef

# ----------------------------------------------------------------------
# How a call is sent to a worker, and its result is returned.
#
# A function of a module is sent by its name, so the worker must find the module where the caller did: the call carries
# the caller's search path and folder. Errors that hitmiss raises on purpose are returned as such; anything else that
# goes wrong in a worker is a bug, and Ray returns its traceback.

T = TypeVar("T")
KINDS: Final = {kind.__name__: kind for kind in (GateFailed, UsageError, IncompleteRun, EnvironmentFault, HitmissError)}
"""The errors that are rebuilt from their message alone; the general one is last."""


def _search_path() -> tuple[str, ...]:
    return tuple(path for path in sys.path if path)


@dataclass(frozen=True)
class Sent(Generic[T]):
    """A pickled value for a worker, with the search path of its modules and the version of hitmiss."""

    pickled: bytes
    folder: str = field(default_factory=os.getcwd)
    path: tuple[str, ...] = field(default_factory=_search_path)
    version: str = __version__

    @classmethod
    def of(cls, value: T) -> Sent[T]:
        """Pack a value; functions of the caller's own script are sent with their code."""
        from ray import cloudpickle

        return cls(cloudpickle.dumps(value))

    def open(self) -> T:
        """Unpack the value in the worker."""
        import pickle

        if self.version != __version__:
            raise EnvironmentFault(
                f"a machine of the cluster has hitmiss {__version__}, this one {self.version}; install one version on all"
            )
        if Path(self.folder).is_dir():
            os.chdir(self.folder)  # relative paths mean the same as for the caller
        sys.path.extend(path for path in self.path if path not in sys.path)
        try:
            return pickle.loads(self.pickled)  # type: ignore[no-any-return]  # the caller's own bytes
        except ImportError as error:
            raise EnvironmentFault(
                f"a machine of the cluster lacks what the work needs: {error}; install it on all of them"
            ) from None


@dataclass(frozen=True)
class Refusal:
    """An error that hitmiss raised in a worker, to be sent to the caller."""

    kind: str
    message: str
    faults: tuple[Fault, ...] = ()
    code: str | None = None

    def raised(self) -> HitmissError:
        """Return the error again. A special class comes back as the general one, with the message and the exit code."""
        if self.kind == DataError.__name__:
            return DataError(self.message, self.faults, code=self.code)
        return KINDS[self.kind](self.message, code=self.code)


def refusal_of(error: HitmissError) -> Refusal:
    """Prepare an error for sending.

    >>> from hitmiss.core.errors import UnknownName
    >>> refusal_of(UnknownName("metric", "eeer", ["eer"])).raised()
    UsageError("unknown metric 'eeer'; did you mean 'eer'? Known: eer")
    """
    if isinstance(error, DataError):
        return Refusal(DataError.__name__, str(error), error.faults, error.code)
    return Refusal(next(name for name, kind in KINDS.items() if isinstance(error, kind)), str(error), (), error.code)


def attempted(call: Callable[[], T]) -> T | Refusal:
    """Return the result of a call, or the error that it raised on purpose."""
    try:
        return call()
    except HitmissError as error:
        return refusal_of(error)
    except FileNotFoundError as error:
        unseen = (
            f"a machine of the cluster does not see the file {error.filename}; "
            "put the files where every machine finds them under the same path"
        )
        return refusal_of(DataError(unseen, code="unseen-file"))


def accepted(result: T | Refusal) -> T:
    """Return a result, or raise it if it is an error."""
    if isinstance(result, Refusal):
        raise result.raised()
    return result


# ----------------------------------------------------------------------
# Join a Ray cluster, or start one on this machine, without its messages and without its telemetry.
#
# with joined("auto") as cluster:               # a cluster of this machine's cores, removed at the end
# with joined("head:6379") as cluster:          # a running cluster, from one of its machines
# with joined("ray://head:10001") as cluster:   # a running cluster, from outside

AUTO: Final = "auto"
CLIENT: Final = "ray://"
REACH_SECONDS: Final = 5.0
"""How long an address is tried."""
WAIT_SECONDS: Final = 1.0
"""How long to wait for a result before the head is checked."""
SILENT_SECONDS: Final = 15.0
"""A head that accepts no connection for this long is lost. Ray waits for 60 s."""
STORE_BYTES: Final = 512 * 2**20
"""Shared memory of a cluster on this machine: only for tallies and prepared clips in transit."""
SOCKET_ROOM: Final = 35
"""Longest temporary folder with which Ray's sockets, with names of 70 characters, stay below the system's 107."""

QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry is sent
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # every error is handled here
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the future default of Ray; without it, Ray warns
    "GRPC_VERBOSITY": "ERROR",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
WORKERS: Final = {"POLARS_MAX_THREADS": "1"}
"""Environment of the workers of a cluster on this machine: there is one per core, so each has one thread."""


class Head:
    """The head node, which coordinates a cluster. Without it no work is possible.

    If the head has been silent for a minute, Ray ends the calling process from native code and without a message. So
    while waiting for results, the head is checked regularly, and the work stops earlier, with a clear message.
    """

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._silent_since: float | None = None
        self.is_lost = False

    def look(self) -> bool:
        """Return whether the head accepts connections; raise `EnvironmentFault` if it has not for too long."""
        try:
            socket.create_connection(self._place, timeout=WAIT_SECONDS).close()
        except OSError:
            now = time.monotonic()
            self._silent_since = now if self._silent_since is None else self._silent_since
            if now - self._silent_since >= SILENT_SECONDS:
                raise self.loss() from None
            time.sleep(WAIT_SECONDS)  # Ray may return immediately when a connection is gone
            return False
        self._silent_since = None
        return True

    def loss(self) -> EnvironmentFault:
        """Return the error to raise when the head is lost."""
        self.is_lost = True
        return EnvironmentFault(
            f"the head of the cluster, {self._place[0]}:{self._place[1]}, is lost: it takes no connections; start the "
            f"cluster again and give the same command (what `detect` had scored is kept: add --resume)",
            code="lost-cluster",
        )


@dataclass(frozen=True)
class Cluster:
    """The resources of a cluster, and how to wait for its results."""

    address: str
    cpus: int
    gpus: int
    machines: int
    head: Head | None = field(default=None, compare=False, repr=False)

    @property
    def is_lost(self) -> bool:
        """Whether its head is gone, so that no call to it returns."""
        return self.head is not None and self.head.is_lost

    def reach(self) -> None:
        """Return when the head accepts connections: calls that need it would otherwise wait forever."""
        while self.head is not None and not self.head.look():
            pass

    def ready(self, references: Sequence[ObjectRef]) -> list[ObjectRef]:
        """Return the references whose results are ready: usually one, none after a second of waiting."""
        try:
            done, _ = need_ray().wait(list(references), num_returns=1, timeout=WAIT_SECONDS)
        except ConnectionError as error:  # `ray://` has given up by itself
            raise self._lost(error) from None
        if not done and self.head is not None:
            self.head.look()
        return list(done)

    def result(self, reference: ObjectRef) -> Any:
        """Return the result of a task, however long it takes."""
        while not self.ready([reference]):
            pass
        try:
            return need_ray().get(reference)
        except ConnectionError as error:
            raise self._lost(error) from None

    def _lost(self, error: ConnectionError) -> Exception:
        return error if self.head is None else self.head.loss()

    def __str__(self) -> str:
        gpus = f", {self.gpus} GPU{'s' * (self.gpus > 1)}" if self.gpus else ""
        return f"{self.cpus} CPU{'s' * (self.cpus > 1)}{gpus} on {self.machines} machine{'s' * (self.machines > 1)}"


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """Join the cluster at an address, or start one on this machine (`auto`); leave or stop it at the end in every case.

    If the calling program has already joined a cluster, `auto` means that one, and it is left running.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    secret = _secret()
    with _environment(secret if address == AUTO else {}):  # Ray reads these when it is imported
        ray = need_ray()
    if address == AUTO and ray.is_initialized():
        yield _described(ray, address)
        return
    silence(ray)
    with _started(ray, secret) if address == AUTO else _met(ray, address):
        try:
            yield _described(ray, address)
        finally:
            with suppress(Exception):  # report the error that ended the work, not this one
                ray.shutdown()


def need_ray() -> ModuleType:
    """Import the package, or raise an error that says how to install it."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise EnvironmentFault(f"--cluster needs the package 'ray' ({error}): pip install 'hitmiss[cluster]'") from None


def deaths(ray: ModuleType) -> tuple[type[Exception], ...]:
    """Return the exceptions that Ray raises when the process or the machine of a task, or its result, is gone."""
    names = ("WorkerCrashedError", "OutOfMemoryError", "ObjectLostError", "NodeDiedError", "LocalRayletDiedError")
    return tuple(getattr(ray.exceptions, name) for name in names)


def silence(ray: ModuleType) -> None:
    """Stop Ray from printing: it reports a dead worker on stdout even if log_to_driver is off.

    There is no public setting for that (ray-project/ray#28216), so the function that prints is replaced.
    """
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    worker = getattr(getattr(ray, "_private", None), "worker", None)
    if worker is not None and hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


@contextmanager
def _started(ray: ModuleType, secret: Mapping[str, str | None]) -> Iterator[None]:
    """Start a cluster on this machine. Its ports are open to the network, so it requires our secret for calls."""
    folder = _short_folder()
    try:
        with _environment(secret):
            with _environment(WORKERS):
                ray.init(
                    address="local",
                    num_cpus=cores(),
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    object_store_memory=STORE_BYTES,
                    _temp_dir=folder,
                )
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _met(ray: ModuleType, address: str) -> Iterator[None]:
    """Join a running cluster. Ray would retry an unreachable address for minutes, with long messages."""
    host, port = place_of(address)
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise EnvironmentFault(
            f"nothing answers at {host}:{port} ({error.strerror or error}); start a cluster there with "
            f"`ray start --head`, or say --cluster auto for one on this machine"
        ) from None
    refusals = (ImportError, ConnectionError, RuntimeError, ValueError, AssertionError, ray.exceptions.RayError)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except refusals as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise EnvironmentFault(
            f"the cluster at {address} cannot be joined: {first}; the machines must have the same versions of Python and "
            f"ray, and RAY_AUTH_TOKEN here must be the cluster's"
        ) from None
    yield


@cache
def _token() -> str:
    return secrets.token_hex(32)


def _secret() -> dict[str, str | None]:
    """Return what a cluster on this machine requires from callers; the user's own settings are kept.

    Ray reads the mode when it is imported: if that has already happened, the mode is left to Ray (since 2.59 it
    requires a token by itself).
    """
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    mode = None if "ray" in sys.modules else "token"
    return {"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", _token())}


def place_of(address: str) -> tuple[str, int]:
    """Return host and port of an address.

    >>> place_of("ray://head:10001"), place_of("192.0.2.7:6379")
    (('head', 10001), ('192.0.2.7', 6379))
    """
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise UsageError(f"--cluster is auto, HOST:PORT or ray://HOST:PORT; found {address!r}")
    return host.strip("[]"), int(port)


def _described(ray: ModuleType, address: str) -> Cluster:
    has = ray.cluster_resources()
    machines = sum(1 for node in ray.nodes() if node.get("Alive"))
    place = ray.get_runtime_context().gcs_address if address == AUTO else address
    return Cluster(address, int(has.get("CPU", 0)), int(has.get("GPU", 0)), machines, Head(*place_of(place)))


def _short_folder() -> str:
    base = tempfile.gettempdir()
    place = base if len(base) <= SOCKET_ROOM - 24 or not Path("/tmp").is_dir() else "/tmp"
    return tempfile.mkdtemp(prefix="hitmiss-ray-", dir=place)


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables for processes started in the block; restore all afterwards, including those given as None."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: value for name, value in values.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# ----------------------------------------------------------------------
# Ray tasks as an executor: `RayTasks(cluster)(function, arguments)` yields the results in the order of the arguments.
#
# A task whose process or machine dies is repeated: functions are pure, so the result has the same bits. A task that
# kills one process after another is reported.

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
        try:
            for given in arguments:
                waiting.append((task.remote(sent, Sent.of(given)), given))
                if len(waiting) >= self.most:
                    yield self._result(*waiting.popleft())
            while waiting:
                yield self._result(*waiting.popleft())
        finally:
            reachable = ray.is_initialized() and not self.cluster.is_lost
            for reference, _ in waiting if reachable else ():  # the caller has stopped: these results are not needed
                ray.cancel(reference, force=True)

    def _result(self, reference: ObjectRef, given: tuple[object, ...]) -> Any:
        try:
            return accepted(self.cluster.result(reference))
        except deaths(need_ray()) as error:
            what = getattr(given[0], "path", given[0]) if given else "a task"
            raise EnvironmentFault(
                f"{what}: {RETRIES + 1} processes died over it ({_cause(error)}); each needs the memory of one shard",
                code="workers-died",
            ) from None


def _call(function: Sent[Callable[..., T]], given: Sent[tuple[object, ...]]) -> T | Refusal:
    """Run the call in the worker."""
    return attempted(lambda: function.open()(*given.open()))


def _cause(error: BaseException) -> str:
    return "out of memory" if "OutOfMemory" in type(error).__name__ else "killed, or a crash in native code"
