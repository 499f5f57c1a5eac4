"""Tests that run at night: `make nightly`, or `pytest -m nightly`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def by_day(*chosen: Any, of: Iterable[Any]) -> list[Any]:
    """Return all values of a parameter; those that are not chosen are tried at night only.

    >>> [getattr(value, "values", (value,))[0] for value in by_day("a", of="abc")]
    ['a', 'b', 'c']
    """
    return [value if value in chosen else pytest.param(value, marks=pytest.mark.nightly) for value in of]
