"""Packages that not everybody has: imported when they are used."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from hitmiss.core.errors import EnvironmentFault


def need_package(module: str, what: str, install: str, package: str = "") -> ModuleType:
    """Import a module, or raise an error that says what needs its package and how to install it.

    >>> need_package("json", "a sentence", "hitmiss[none]").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise EnvironmentFault.of(
            "missing-package", what=what, package=package or module, install=install, error=error
        ) from None
