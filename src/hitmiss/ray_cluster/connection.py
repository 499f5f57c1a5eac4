"""Joining a Ray cluster, or starting one on this machine, without its noise and without its telemetry.

with joined("auto") as cluster:               # a cluster of this machine's cores, gone at the end
with joined("head:6379") as cluster:          # one that runs already, from one of its machines
with joined("ray://head:10001") as cluster:   # one that runs already, from outside
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from hitmiss.errors import EnvironmentFault, UsageError

AUTO: Final = "auto"
CLIENT: Final = "ray://"
REACH_SECONDS: Final = 5.0
"""How long an address is tried."""
STORE_BYTES: Final = 512 * 2**20
"""Shared memory of a cluster on this machine: tallies and prepared clips under way, no more."""
SOCKET_ROOM: Final = 35
"""Longest temporary folder in which Ray's sockets, with names of 70 characters, stay below the system's 107."""

QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to anybody
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # every error is looked at by us
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray will do by itself; without it, it warns
    "GRPC_VERBOSITY": "ERROR",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
WORKERS: Final = {"POLARS_MAX_THREADS": "1"}
"""What the workers of a cluster on this machine get: there is one a core, so each has one thread."""


@dataclass(frozen=True)
class Cluster:
    """What a cluster has."""

    address: str
    cpus: int
    gpus: int
    machines: int

    def __str__(self) -> str:
        gpus = f", {self.gpus} GPU{'s' * (self.gpus > 1)}" if self.gpus else ""
        return f"{self.cpus} CPU{'s' * (self.cpus > 1)}{gpus} on {self.machines} machine{'s' * (self.machines > 1)}"


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """The cluster at an address, or a new one on this machine (`auto`). Left, or stopped, at the end, however that comes.

    Where the calling program has joined a cluster itself, `auto` means that one, and it is left as it is.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    secret = _secret()
    with _environment(secret if address == AUTO else {}):  # what Ray looks at when it is imported
        ray = need_ray()
    if address == AUTO and ray.is_initialized():
        yield _described(ray, address)
        return
    silence(ray)
    with _started(ray, secret) if address == AUTO else _met(ray, address):
        try:
            yield _described(ray, address)
        finally:
            with suppress(Exception):  # whatever ended the work is what is told
                ray.shutdown()


def need_ray() -> Any:
    """The package, or how to get it."""
    try:
        import ray
    except ImportError as error:
        raise EnvironmentFault(f"--cluster needs the package 'ray' ({error}): pip install 'hitmiss[cluster]'") from None
    return ray


def deaths(ray: Any) -> tuple[type[Exception], ...]:
    """What Ray raises when the process or the machine of a task is gone, or what it had made is."""
    names = ("WorkerCrashedError", "OutOfMemoryError", "ObjectLostError", "NodeDiedError", "LocalRayletDiedError")
    return tuple(getattr(ray.exceptions, name) for name in names)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def silence(ray: Any) -> None:
    """Have Ray print nothing here: a dead worker is news to it even where log_to_driver is off, and goes to stdout.

    There is no public switch for that (ray-project/ray#28216), so the function that prints is replaced.
    """
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


@contextmanager
def _started(ray: Any, secret: Mapping[str, str | None]) -> Iterator[None]:
    """A cluster on this machine. Its ports are open to the network, so it takes no calls without our secret."""
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
def _met(ray: Any, address: str) -> Iterator[None]:
    """A cluster that runs already. Ray would try an address where nobody listens for minutes, and say so at length."""
    host, port = place_of(address)
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise EnvironmentFault(
            f"nobody answers at {host}:{port} ({error.strerror or error}); start a cluster there with "
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
    """What a cluster on this machine asks of its callers; what the user has settled stays.

    Ray looks at the mode when it is imported: where that is done already, the mode is left to it (since 2.59 it asks for
    a token on its own).
    """
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    mode = None if "ray" in sys.modules else "token"
    return {"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", _token())}


def place_of(address: str) -> tuple[str, int]:
    """Host and port of an address.

    >>> place_of("ray://head:10001"), place_of("192.0.2.7:6379")
    (('head', 10001), ('192.0.2.7', 6379))
    """
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise UsageError(f"--cluster is auto, HOST:PORT or ray://HOST:PORT; found {address!r}")
    return host.strip("[]"), int(port)


def _described(ray: Any, address: str) -> Cluster:
    has = ray.cluster_resources()
    machines = sum(1 for node in ray.nodes() if node.get("Alive"))
    return Cluster(address, int(has.get("CPU", 0)), int(has.get("GPU", 0)), machines)


def _short_folder() -> str:
    base = tempfile.gettempdir()
    place = base if len(base) <= SOCKET_ROOM - 24 or not Path("/tmp").is_dir() else "/tmp"
    return tempfile.mkdtemp(prefix="hitmiss-ray-", dir=place)


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Variables for the processes that are started in the block. Afterwards all are as before, also those given as None."""
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
