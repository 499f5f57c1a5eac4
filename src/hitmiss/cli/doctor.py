"""`hitmiss doctor`: check whether this machine can do the work, and say what to type if it cannot."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from hitmiss._version import __version__
from hitmiss.cli import printing
from hitmiss.cli.shared import JSON
from hitmiss.core.machine import cores

if TYPE_CHECKING:
    from packaging.requirements import Requirement

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
YEAR_OF_RELEASE = 2025


@dataclass(frozen=True)
class Finding:
    """One finding. `state` is ok, missing (an optional part is not installed), note or broken."""

    what: str
    state: str
    found: str
    advice: str = ""


def doctor(json: Annotated[bool, JSON] = False) -> None:
    """Check versions, packages, threads and the clock. Exit code 5 if something that is needed is missing.

    $ hitmiss doctor
    """
    findings = list(examine())
    if json:
        printing.out_json({"schema": 1, "version": __version__, "findings": [asdict(f) for f in findings]})
    else:
        rows = [[f.what, f.state, f.found, f.advice] for f in findings]
        printing.out_table(["what", "state", "found", "advice"], rows)
    broken = [f.what for f in findings if f.state == "broken"]
    if broken:
        from hitmiss.core.errors import EnvironmentFault

        raise EnvironmentFault.of("machine-unfit", broken=tuple(broken))


def examine() -> Iterator[Finding]:
    """Return every finding, in the order of printing."""
    yield Finding("hitmiss", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from _packages()
    yield _bytecode()
    yield _threads()
    yield _clock()


def _packages() -> Iterator[Finding]:
    """Check the packages that the metadata of hitmiss name, each once: the core is required, extras are optional."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    asked: dict[str, tuple[Requirement, list[str]]] = {}
    for requirement in map(Requirement, requires("hitmiss") or []):
        extra = str(requirement.marker or "").partition("extra == ")[2].strip("'\"")
        asked.setdefault(f"{requirement.name}{requirement.specifier}", (requirement, []))[1].append(extra)
    for requirement, extras in asked.values():
        own_name_first = sorted(extras, key=lambda extra: (extra != "", extra != requirement.name))
        yield package(requirement, own_name_first[0])


def package(requirement: Requirement, extra: str = "") -> Finding:
    """Check one package: return the version found, or the command that installs it.

    >>> from packaging.requirements import Requirement
    >>> package(Requirement("no-such-package>=1"), extra="frames")
    Finding(what='no-such-package', state='missing', found='not installed', advice="pip install 'hitmiss[frames]'")
    """
    from importlib.metadata import PackageNotFoundError, version

    advice = f"pip install 'hitmiss[{extra}]'" if extra else f"pip install '{requirement.name}{requirement.specifier}'"
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return Finding(requirement.name, "missing" if extra else "broken", "not installed", advice)
    if not requirement.specifier.contains(found, prereleases=True):
        return Finding(requirement.name, "broken", f"{found}, but {requirement.specifier} is needed", advice)
    return Finding(requirement.name, "ok", found)


def _bytecode() -> Finding:
    if sys.dont_write_bytecode:
        advice = "unset PYTHONDONTWRITEBYTECODE: each start compiles every import again"
        return Finding("bytecode", "note", "not written", advice)
    return Finding("bytecode", "ok", "written")


def _threads() -> Finding:
    usable = cores()
    limits = [f"{name}={os.environ[name]}" for name in THREAD_LIMITS if name in os.environ]
    advice = "limits are set; the numbers do not depend on them, only the time does" if limits else ""
    return Finding("threads", "note" if limits else "ok", ", ".join([f"{usable} usable", *limits]), advice)


def _clock() -> Finding:
    now = time.gmtime()
    is_late_enough = now.tm_year >= YEAR_OF_RELEASE
    advice = "" if is_late_enough else "the clock is before this release; dates in reports will be wrong"
    return Finding("clock", "ok" if is_late_enough else "note", time.strftime("%Y-%m-%dT%H:%M:%SZ", now), advice)
