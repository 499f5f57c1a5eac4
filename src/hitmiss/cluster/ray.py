"""Join a Ray cluster, or start one on this machine, without its messages and without its telemetry.

with joined("auto") as cluster:               # a cluster of this machine's cores, removed at the end
with joined("head:6379") as cluster:          # a running cluster, from one of its machines
with joined("ray://head:10001") as cluster:   # a running cluster, from outside
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.core.machine import cores
from hitmiss.core.packages import need_package

if TYPE_CHECKING:
    from ray import ObjectRef


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
        return EnvironmentFault.of("lost-cluster", place=self._place[0], place_2=self._place[1])


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
    return need_package("ray", "a cluster", "hitmiss[cluster]")


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
        raise EnvironmentFault.of("no-cluster", host=host, port=port, strerror=error.strerror or error) from None
    refusals = (ImportError, ConnectionError, RuntimeError, ValueError, AssertionError, ray.exceptions.RayError)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except refusals as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise EnvironmentFault.of("cluster-not-joined", address=address, first=first) from None
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
        raise UsageError.of("bad-cluster-address", address=address)
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
