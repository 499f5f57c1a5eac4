"""Options that several verbs have and no spec holds, each declared once."""

from __future__ import annotations

from typing import Final

from hitmiss.core.spec import MEASURING, READING, WRITING, Option, Spec, opt, options_of

JSON: Final = opt("JSON to stdout instead of text.", WRITING, common=True)
FULL: Final = opt(
    "Print every table and every check; by default what decides, in at most 40 lines.", WRITING, common=True
)
KEY: Final = opt("Key or protocol file with the labels.", READING, common=True)
RULES: Final = opt(
    "Read labels by the rules of a protocol, or of a .toml file.",
    READING,
    "--protocol",
    "-p",
    metavar="NAME|FILE",
    complete="protocols",
    common=True,
)
RESULTS: Final = opt("Write the results (JSON) here too.", WRITING, "--output", "-o", metavar="FILE", common=True)
RUN_FOLDER: Final = opt("The run folder.", WRITING, "--output", "-o", metavar="FOLDER", common=True)
CALIBRATE_KEY: Final = opt("Key of the development scores.", MEASURING)
GROUP: Final = opt("Column that defines the groups, if not language.", MEASURING, complete="columns")
UNDEFINED: Final = opt("Shares with an empty denominator; zero as documented.", MEASURING)
FITTED_KEY: Final = opt("Key of these scores.", READING, "--key", common=True)
METRICS_OUTPUT: Final = opt("Write the documented metrics.json here.", WRITING, metavar="FILE")


def field_option(spec: type[Spec], name: str) -> Option:
    """Return the option of a field, for a verb that takes it as it is written instead of the spec."""
    return options_of(spec)[name]  # type: ignore[arg-type]


def by_group(texts: list[str] | None) -> dict[str, float]:
    """Read numbers by group from `0.8`, `1.5%` or `en=0.8`; the group of a plain number is empty.

    >>> by_group(["en=0.8", "tr=70%"]), by_group(["1.5%"])
    ({'en': 0.8, 'tr': 0.7}, {'': 0.015})
    """
    from hitmiss.core.errors import UsageError

    found: dict[str, float] = {}
    for text in texts or []:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value.rstrip("%")) / (100.0 if value.endswith("%") else 1.0)
        except ValueError:
            raise UsageError.of("bad-number-of-group", text=text) from None
    if len(found) != len(texts or []) or ("" in found and len(found) > 1):
        raise UsageError.of("bad-number-of-group", text=(texts or [""])[-1])
    return found
