"""Options as the documents write them: several values after one option, and underscores for dashes.

`--languages en es --pred_dir DIR` becomes `--languages en --languages es --pred-dir DIR`, which is what the parser knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hitmiss.errors import UsageError

SPACED: Final[Mapping[str, tuple[str, ...]]] = {
    "toxicity": ("--languages", "--identity", "--texts"),
    "threshold": ("--test", "--languages"),
    "attack": ("--strengths", "--center", "--threshold"),
    "compare": ("--languages",),
    "triage": ("--thresholds", "--costs"),
    "llm": ("--models", "--thresholds"),
    "review": ("--thresholds", "--items"),
}
"""For each verb the options that take all the words up to the next option; `--` ends them before an argument."""

NUMBER: Final = re.compile(r"-(\d|\.\d|inf)")
OPTION: Final = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")


def settle(words: Sequence[str]) -> list[str]:
    """The words of a command line as the parser knows them.

    >>> settle(["toxicity", "--languages", "en", "es", "--pred_dir", "a_b", "--dump_errors"])
    ['toxicity', '--languages', 'en', '--languages', 'es', '--pred-dir', 'a_b', '--dump-errors']
    >>> settle(["toxicity", "--languages", "en", "es", "--", "my_file.csv"])
    ['toxicity', '--languages', 'en', '--languages', 'es', '--', 'my_file.csv']
    >>> settle(["toxicity", "--languages", "--run_tag", "a"])
    Traceback (most recent call last):
    hitmiss.errors.UsageError: --languages needs a value after it
    """
    verb = next((word for word in words if word in SPACED), None)
    spaced = SPACED[verb] if verb is not None else ()
    settled: list[str] = []
    current: str | None = None
    for at, word in enumerate(words):
        if word == "--":
            return settled + list(words[at:])
        if is_option(word):
            current = dashed(word) if dashed(word) in spaced else None  # with `=` it has its one value
            if current is None:
                settled.append(dashed(word))
            elif at + 1 == len(words) or is_option(words[at + 1]):
                raise UsageError(f"{word} needs a value after it")
        elif current is not None:
            settled += [current, word]
        else:
            settled.append(word)
    return settled


def is_option(word: str) -> bool:
    """Whether a word begins an option and is not a negative number.

    >>> is_option("--seed"), is_option("-o"), is_option("-0.5"), is_option("-")
    (True, True, False, False)
    """
    return word.startswith("-") and len(word) > 1 and NUMBER.match(word) is None


def dashed(word: str) -> str:
    """An option with dashes for underscores; what follows `=` stays.

    >>> dashed("--run_tag=my_run"), dashed("-o")
    ('--run-tag=my_run', '-o')
    """
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if OPTION.fullmatch(name) else word
