"""Options in sentences: as the command line writes them, and as keywords of a function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hitmiss.core.finding import Option

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
SHORT: Final = {"metrics": "-m", "protocol": "-p", "output": "-o"}
"""Keywords whose option has a short name, which sentences use."""
SWITCHES: Final = frozenset(("dedupe", "allow_missing", "resume", "retry", "join", "force", "static"))
"""Options without a value."""
MAPPINGS: Final = frozenset(("columns", "key_columns", "where", "rename"))
LISTS: Final = frozenset(("score_columns", "runs", "metrics"))
TEXTS: Final = frozenset(("positive_value",))
"""Options whose value is a text even if it looks like a number."""


def option(words: str) -> Option:
    """Make an option from its spelling on the command line.

    >>> option("--positive-value 1"), option("-m eer"), option("--dedupe")
    (Option(name='positive_value', value='1'), Option(name='metrics', value='eer'), Option(name='dedupe', value=True))
    """
    return named(spelled(words))


def spelled(words: str) -> Option:
    """Make an option that has only its spelling, which is all that a sentence for a terminal shows."""
    flag, blank, value = words.partition(" ")
    return Option("", value.strip("'") if blank else None, flag)


def mentioned(flag: str) -> Option:
    """Make an option of which only the name is meant, with its spelling: also one that needs no value is not switched on."""
    name = flag.lstrip("-").replace("-", "_")
    return Option(name if name in SWITCHES else "", None, flag)


def named(option: Option) -> Option:
    """Return an option with its keyword; one without a value that needs none is switched on."""
    if option.name:
        return option
    from hitmiss.core.options import keyword_of  # reads every spec

    name = keyword_of(option.flag)
    return replace(option, name=name, value=True if option.value is None and name in SWITCHES else option.value)


def on_command_line(options: Sequence[Option]) -> str:
    """Return options as the command line writes them.

    >>> on_command_line([Option("metrics", "eer"), Option("positive_value", 1)])
    '-m eer --positive-value 1'
    """
    return " ".join(
        flag_of(o) if o.value is None or o.value is True else f"{flag_of(o)} {_quoted(_plain(o.value))}"
        for o in options
    )


def flag_of(option: Option) -> str:
    """Return how the command line spells an option."""
    if flag := option.flag or SHORT.get(option.name):
        return flag
    from hitmiss.core.options import option_name  # reads every spec

    return option_name(option.name)


def _quoted(value: str) -> str:
    """Return a value as a shell takes it: with quotes around spaces."""
    return f"'{value}'" if " " in value and "'" not in value else value


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_keywords(options: Sequence[Option]) -> str:
    """Return options as keywords of a function; an option that is given twice is one keyword.

    >>> as_keywords([Option("columns", "item=utt"), Option("columns", "score=cm"), Option("dedupe", True)])
    "columns={'item': 'utt', 'score': 'cm'}, dedupe=True"
    >>> as_keywords([Option("metrics", "eer"), Option("threshold", "0.5"), Option("higher", "spoof"), Option("stream")])
    "metrics=['eer'], threshold=0.5, higher='spoof', stream"
    """
    merged: dict[str, list[str]] = {}
    brackets: dict[str, tuple[str, str]] = {}
    for o in map(named, options):
        text = "" if o.value is None else _plain(o.value)
        left, equals, right = text.partition("=")
        if o.value is None:
            merged.setdefault(o.name, [])
        elif equals and o.name in MAPPINGS:
            brackets[o.name] = ("{", "}")
            merged.setdefault(o.name, []).append(f"{left!r}: {right!r}")
        elif o.name in LISTS:
            brackets[o.name] = ("[", "]")
            merged.setdefault(o.name, []).append(repr(text))
        else:
            is_plain = isinstance(o.value, bool) or (bool(_NUMBER.fullmatch(text)) and o.name not in TEXTS)
            merged[o.name] = [text if is_plain else repr(text)]
    shown = []
    for name, values in merged.items():
        before, after = brackets.get(name, ("", ""))
        shown.append(f"{name}={before}{', '.join(values)}{after}" if values else name)
    return ", ".join(shown)
