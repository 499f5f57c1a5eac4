"""Python runs this at the start of every process that a test starts: what such a process finds is recorded too.

The folder of this file is put on `PYTHONPATH` by `tests/produced/whole_run.py`. Nothing is imported before the process itself
imports it, so that tests of what a command imports see the same as without a recorder.
"""

import os
import sys
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

WATCHED = "hitmiss.core.finding"


class Recording(Loader):
    """The loader of the module of findings, after which each new finding writes down its code."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        record(module.Finding)


class Watch(MetaPathFinder):
    """Finds the module of findings where it is, and records what it makes."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != WATCHED:
            return None
        found = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if found is not None and found.loader is not None:
            found.loader = Recording(found.loader)
        return found


def record(kind: type) -> None:
    """Write down the code of every finding that this process makes, each once."""
    folder, plain = os.environ["HITMISS_PRODUCED"], kind.__init__
    seen: set[str] = set()

    def made(self: object, code: str, *values: object, **named: object) -> None:
        plain(self, code, *values, **named)
        if code not in seen:
            seen.add(code)
            # a recorder never disturbs: the folder is gone when the run has ended, and tests fill disks and limit files
            with suppress(OSError), open(f"{folder}/{os.getpid()}.codes", "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{code}\n")

    kind.__init__ = made  # type: ignore[misc]


if os.environ.get("HITMISS_PRODUCED"):
    if WATCHED in sys.modules:
        record(sys.modules[WATCHED].Finding)
    else:
        sys.meta_path.insert(0, Watch())
