"""Every option of the specs by its keyword: how the command line spells what Python calls `columns`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from hitmiss.core.design import Design
from hitmiss.core.gate_spec import GateSpec
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.spec import Spec, options_of

SPECS: Final[tuple[type[Spec], ...]] = (ReadSpec, Design, RunSpec, ReportSpec, GateSpec)


def option_name(keyword: str) -> str:
    """Return the option of the command line for a keyword of Python.

    >>> option_name("columns"), option_name("score_kind"), option_name("metrics"), option_name("languages")
    ('--column', '--score-kind', '--metric', '--languages')
    """
    return _flags().get(keyword) or f"--{keyword.rstrip('_').replace('_', '-')}"


def keyword_of(flag: str) -> str:
    """Return the keyword of Python for an option of the command line; of one that no spec declares, its own name.

    >>> keyword_of("--column"), keyword_of("-m"), keyword_of("--max-regression"), keyword_of("-o")
    ('columns', 'metrics', 'max_regression', 'output')
    """
    return _keywords().get(flag) or {"-o": "output"}.get(flag) or flag.lstrip("-").replace("-", "_")


@cache
def _keywords() -> dict[str, str]:
    return {
        spelling: field
        for spec in SPECS
        for field, option in options_of(spec).items()  # type: ignore[arg-type]
        for spelling in option.spellings(field)
    }


@cache
def _flags() -> dict[str, str]:
    return {
        field: option.spellings(field)[0]
        for spec in SPECS
        for field, option in options_of(spec).items()  # type: ignore[arg-type]
        if option.is_flag
    }


def option_words(choice: Mapping[str, str]) -> list[str]:
    """Return options of a choice as the words of a command line; a flag has no value.

    >>> option_words({"positive": "not real", "positive_value": "1", "yes": ""})
    ['--positive', 'not real', '--positive-value', '1', '--yes']
    """
    return [word for name, value in choice.items() for word in (option_name(name), value) if word]
