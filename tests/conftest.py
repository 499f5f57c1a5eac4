"""What all tests share: how hypothesis runs, and where the reference data lies."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from _pytest.terminal import TerminalReporter
from hypothesis import settings
from tests.produced import whole_run

settings.register_profile("hitmiss", deadline=None, max_examples=60, derandomize=bool(os.environ.get("CI")))
settings.register_profile("thorough", deadline=None, max_examples=500)
"""What the nightly workflow asks for: other examples each time, and many more of them."""
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "hitmiss"))

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Set before numpy is imported, and for the processes that tests start: workers that share the cores would spend most of
each small product waiting for each other's threads. What threads may not change is tested where they are set."""

REFERENCE = Path(__file__).resolve().parent / "official_reference"
SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder with synthetic scores, and the numbers of the official ASVspoof 5 package and others for them."""
    return REFERENCE


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder with real detectors' scores and what was published about them."""
    return _folder("scores")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser; the test is skipped where there is none."""
    from tests.browser.chromium import browser

    with browser() as opened:
        yield opened


def pytest_configure(config: pytest.Config) -> None:
    """Record what a run of all tests finds."""
    whole_run.begin(config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of all tests fails if a code of the catalogue was not produced."""
    session.config.stash[PRODUCED] = whole_run.end(session)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say which codes were not produced."""
    for line in terminalreporter.config.stash.get(PRODUCED, []):
        terminalreporter.write_line(line, red=True)


PRODUCED = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """In a fresh checkout the first import of a file also compiles it, which costs more than all else in collecting.

    Workers that import the same files in the same order would each compile all of them. So each begins at a place of its
    own, and finds compiled what the others have begun with. What is collected lives as long as the tests: the collector
    of garbage need not look through it again and again.
    """
    gc.disable()
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    root = session.config.rootpath
    files = [file for asked in session.config.args for file in sorted((root / asked).rglob("test_*.py"))]
    begin = number * len(files) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    for file in files[begin:] if number else ():
        # what cannot be imported is reported by the collection itself, in its place
        with contextlib.suppress(Exception, pytest.skip.Exception):
            import_module(".".join(file.relative_to(root).with_suffix("").parts))
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what runs at night to `-m nightly`, and to who names a test by its id."""
    if "nightly" in str(config.option.markexpr) or any("::" in argument for argument in config.args):
        return
    by_night = [item.get_closest_marker("nightly") is not None for item in items]
    config.hook.pytest_deselected(items=[item for item, left in zip(items, by_night, strict=True) if left])
    items[:] = [item for item, left in zip(items, by_night, strict=True) if not left]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """The examples in docstrings are those of the package: looking for some in every test costs seconds per worker."""
    found = yield
    return [collector for collector in found if not isinstance(collector, DoctestModule)]  # type: ignore[return-value]


def _folder(name: str) -> Path:
    if not (SHARED / name).is_dir():
        pytest.skip(f"the folder shared/data/{name} is not here")
    return SHARED / name


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are never a test's name: compressed ones may carry a clock, and each process would collect other tests."""
    return argname if isinstance(val, bytes) else None
