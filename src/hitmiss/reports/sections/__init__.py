"""The sections of a report, one file each: a function of the name of its file, and `PLACE`, which orders them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitmiss.reports.context import Context
    from hitmiss.reports.evaluations import Evaluation
    from hitmiss.reports.section import Section


def all_sections() -> list[Callable[[Evaluation, Context], Section]]:
    """Return the sections of a report in their order; one without blocks is left out of a page."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    return [getattr(modules[name], name) for name in sorted(names, key=lambda name: modules[name].PLACE)]
