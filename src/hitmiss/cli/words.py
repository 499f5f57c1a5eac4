"""The words of a command line, as people and the evaluation documents write them, in the form that the parser knows.

    toxicity --languages en es --pred_dir DIR -q     ->     --languages=en --languages=es --pred-dir=DIR

Underscores are dashes; an option may take all words up to the next one; a value is a value, whatever it looks like
(`--title -q`, `--threshold -0.5`); an option that takes one value takes it once; and the options of every verb stand
anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import UsageError

if TYPE_CHECKING:
    import click

NUMBER: Final = re.compile(r"-(\d|\.\d|inf)")
NAME: Final = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")
EVERYWHERE: Final[Mapping[str, str]] = {"--debug": "debug", "--quiet": "quiet", "-q": "quiet", "--verbose": "verbose"}
"""Options that stand anywhere in a command line, before the verb or after it."""


@dataclass
class Parsed:
    """The words for the parser, and the options of every verb that stood among them."""

    words: list[str] = field(default_factory=list)
    everywhere: set[str] = field(default_factory=set)
    values: dict[str, list[str]] = field(default_factory=dict)
    """The values of each option by its long name; a flag has its spelling as value."""


def parse(words: Sequence[str], options: Mapping[str, click.Option]) -> Parsed:
    """Read the words after a verb; `options` are those of the verb by their spellings.

    >>> import click
    >>> languages, title = click.Option(["--languages"], multiple=True), click.Option(["--title"])
    >>> parse(["--title", "-q", "-q", "a_b"], {"--title": title})
    Parsed(words=['--title=-q', 'a_b'], everywhere={'quiet'}, values={'--title': ['-q']})
    """
    parsed, left = Parsed(), list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            parsed.words += [word, *left]
            break
        if word in EVERYWHERE:
            parsed.everywhere.add(EVERYWHERE[word])
            continue
        name, value = _split(word, options)
        option = options.get(name)
        if option is None:
            parsed.words.append(name if value is None else f"{name}={value}")
        elif option.is_flag:
            _take(parsed, option, name, None)
            parsed.words.append(name if value is None else f"{name}={value}")
        else:
            for one in [value] if value is not None else _values(word, option, left):
                _take(parsed, option, name, one)
                long = max(option.opts, key=len)
                parsed.words.append(f"{long}={one}")
    return parsed


def is_option(word: str) -> bool:
    """Say whether a word begins an option and is not a negative number.

    >>> is_option("--seed"), is_option("-o"), is_option("-0.5"), is_option("-")
    (True, True, False, False)
    """
    return word.startswith("-") and len(word) > 1 and NUMBER.match(word) is None


def dashed(word: str) -> str:
    """Replace underscores by dashes in an option's name; the text after `=` is kept.

    >>> dashed("--run_tag=my_run"), dashed("-o")
    ('--run-tag=my_run', '-o')
    """
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if NAME.fullmatch(name) else word


def _split(word: str, options: Mapping[str, click.Option]) -> tuple[str, str | None]:
    """Return the option that a word begins with, and the value that is written into the same word."""
    if word[:2] in options and len(word) > 2 and not word.startswith("--") and not options[word[:2]].is_flag:
        return word[:2], word[2:].removeprefix("=")
    name, equals, value = dashed(word).partition("=")
    return (name, value if equals else None) if name in options or NAME.fullmatch(name) else (word, None)


def _values(word: str, option: click.Option, left: list[str]) -> list[str]:
    """Take the values of an option from the words that are left."""
    takes_words = getattr(getattr(option, "declared", None), "takes_words", False)
    if not left or (takes_words and is_option(left[0])):
        raise UsageError.of("usage", word=word)
    found = [left.pop(0)]
    while takes_words and left and not is_option(left[0]):
        found.append(left.pop(0))
    return found


def _take(parsed: Parsed, option: click.Option, name: str, value: str | None) -> None:
    """Note a value; an option that takes one value takes it once, and a flag does not contradict itself."""
    long = max(option.opts, key=len)
    before = parsed.values.setdefault(long, [])
    if option.is_flag:
        side = "no" if name in option.secondary_opts else "yes"
        if before and before[0] != side:
            both = f"{long} and {max(option.secondary_opts, key=len, default=long)}"
            raise UsageError.of("given-twice/contradict", both=both)
        before.append(side)
        return
    if before and not option.multiple:
        raise UsageError.of("given-twice", long=long, before=before[0], value=value)
    before.append(str(value))
