"""How a call is sent to a worker of a cluster, and its result is returned.

A function of a module is sent by its name, so the worker must find the module where the caller did: the call carries
the caller's search path and folder. Errors that hitmiss raises on purpose are returned as such; anything else that
goes wrong in a worker is a bug, and Ray returns its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from hitmiss._version import __version__
from hitmiss.core.errors import (
    DataError,
    EnvironmentFault,
    Fault,
    GateFailed,
    HitmissError,
    IncompleteRun,
    UsageError,
)
from hitmiss.core.finding import Finding

T = TypeVar("T")
KINDS: Final = {
    kind.__name__: kind for kind in (GateFailed, UsageError, IncompleteRun, EnvironmentFault, DataError, HitmissError)
}
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
            raise EnvironmentFault.of("cluster-version", version=__version__, version_2=self.version)
        if Path(self.folder).is_dir():
            os.chdir(self.folder)  # relative paths mean the same as for the caller
        sys.path.extend(path for path in self.path if path not in sys.path)
        try:
            return pickle.loads(self.pickled)  # type: ignore[no-any-return]  # the caller's own bytes
        except ImportError as error:
            raise EnvironmentFault.of("cluster-lacks", error=error) from None


@dataclass(frozen=True)
class Refusal:
    """An error that hitmiss raised in a worker, to be sent to the caller."""

    kind: str
    found: Finding
    code: str
    faults: tuple[Fault, ...] = ()

    def raised(self) -> HitmissError:
        """Return the error again. A special class comes back as the general one, with what was found and the exit code."""
        return KINDS[self.kind].coded(self.found, self.code).with_faults(self.faults)


def refusal_of(error: HitmissError) -> Refusal:
    """Prepare an error for sending.

    >>> from hitmiss.core.errors import UnknownName
    >>> error = refusal_of(UnknownName("metric", "eeer", ["eer"])).raised()
    >>> type(error).__name__, str(error)
    ('UsageError', "unknown metric 'eeer'; did you mean 'eer'? Known: eer")
    """
    kind = next(name for name, kind in KINDS.items() if isinstance(error, kind))
    return Refusal(kind, error.found, error.code, error.faults)


def attempted(call: Callable[[], T]) -> T | Refusal:
    """Return the result of a call, or the error that it raised on purpose."""
    try:
        return call()
    except HitmissError as error:
        return refusal_of(error)
    except FileNotFoundError as error:
        return refusal_of(DataError.of("unseen-file", file=error.filename))


def accepted(result: T | Refusal) -> T:
    """Return a result, or raise it if it is an error."""
    if isinstance(result, Refusal):
        raise result.raised()
    return result
