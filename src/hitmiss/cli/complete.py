"""Completion of values: metrics, protocols, the columns of the given files, and the choices of an option."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

    Completing = Callable[[click.Context, click.Parameter, str], list[str]]

WORDS: Final = "hitmiss.words"
"""Where the words of the command line are noted in its context."""


def values_of(what: str, choices: tuple[str, ...] = ()) -> Completing | None:
    """Return what completes the value of an option; None leaves it to the shell, which completes file names.

    >>> values_of("", ("drop", "refuse"))(None, None, "dr")
    ['drop']
    """
    if not what and not choices:
        return None

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        known = SOURCES[what](ctx.meta.get(WORDS, ())) if what else iter(choices)
        head, comma, tail = incomplete.rpartition(",")
        return [f"{head}{comma}{value}" for value in known if value.startswith(tail)]

    return complete


def _metrics(_: Sequence[str]) -> Iterator[str]:
    from hitmiss.core.registry import all_metrics

    yield from sorted(all_metrics())


def _protocols(_: Sequence[str]) -> Iterator[str]:
    from hitmiss.evaluation.protocol import protocols

    yield from sorted(protocols())


def _columns(words: Sequence[str]) -> Iterator[str]:
    """Return the columns named in the first lines of the files among the words."""
    for path in (Path(word) for word in words):
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as file:
                first = file.readline(100_000).rstrip("\r\n")
            yield from first.split("\t" if "\t" in first else "," if "," in first else " ")


SOURCES: Final[Mapping[str, Callable[[Sequence[str]], Iterator[str]]]] = {
    "metrics": _metrics,
    "protocols": _protocols,
    "columns": _columns,
}
