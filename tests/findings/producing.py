"""How a table of cases is tested: each makes the finding of its code, through a function or a command, and it can be read."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hitmiss as hm
from hitmiss.core.errors import HitmissError
from hitmiss.core.finding import Finding

Case = str | Callable[[], object]
"""The words of a command, or something to call; both run in an empty folder."""


@contextlib.contextmanager
def recorded() -> Iterator[list[Finding]]:
    """Collect the findings that are made inside the block."""
    plain, found = Finding.__init__, list[Finding]()

    def made(self: Finding, *values: object, **named: object) -> None:
        plain(self, *values, **named)  # type: ignore[arg-type]
        found.append(self)

    Finding.__init__ = made  # type: ignore[method-assign,assignment]
    try:
        yield found
    finally:
        Finding.__init__ = plain  # type: ignore[method-assign]


def assert_produces(code: str, case: Case, folder: Path, named: str = "") -> None:
    """Check that a case makes the finding of a code, and that its sentence is complete wherever it is read.

    `named` is what the sentence must name: a file, a row, an option or a value of the case.
    """
    with contextlib.chdir(folder), recorded() as found:
        out, err = io.StringIO(), io.StringIO()
        try:
            if isinstance(case, str):
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    assert hm.run(shlex.split(case)) != 5, err.getvalue()
            else:
                case()
        except HitmissError as error:
            assert str(error)
            assert error.message
    made = [f for f in found if f.code == code]
    assert made, f"made were {sorted({f.code for f in found})}; {out.getvalue()[-500:]}{err.getvalue()[-500:]}"
    for f in made[:1]:
        assert f.text
        assert str(f)
        assert f.to_dict()["code"] == code
    assert any(named in f.text for f in made), made[0].text


@contextlib.contextmanager
def lacking(*packages: str) -> Iterator[None]:
    """Be a machine without some packages."""
    with pytest.MonkeyPatch.context() as patch:
        for name in packages:
            for known in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
                patch.setitem(sys.modules, known, None)
            patch.setitem(sys.modules, name, None)
        yield


def without(name: str, call: Callable[[], object]) -> Callable[[], object]:
    """Return a call on a machine that lacks a package."""

    def called() -> object:
        with lacking(name):
            return call()

    return called
