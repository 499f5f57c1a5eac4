"""`hitmiss validate`: report what a file is, and everything that is wrong with it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON, KEY, RULES
from hitmiss.core.options import option_words
from hitmiss.core.read_spec import ReadSpec

if TYPE_CHECKING:
    from hitmiss.io import Examination

FILES = "Score file(s), shards of one run. `-` is stdin; globs and .gz are understood."
SHOWN_VALUES = 8


def validate(
    scores: Annotated[list[str], arg(FILES)],
    key: Annotated[str | None, KEY] = None,
    protocol: Annotated[str | None, RULES] = None,
    *,
    reading: ReadSpec,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Check files without scoring them: the recognised layout and all faults with file, row and value (exit code 3).

    $ hitmiss validate scores.tsv --key key.tsv
    """
    from hitmiss.io import examine

    chosen = None
    if protocol is not None:
        from hitmiss.evaluation.protocol import find_protocol, refuse_layouts
        from hitmiss.evaluation.tandem import complete, with_speaker_column

        chosen = find_protocol(protocol)
        rules = chosen.read.changed(itself={})  # the summary shows the values as they are in the files
        reading = reading.over(rules)
        if chosen.claims_speaker:
            reading = with_speaker_column(reading, key)
    seen = examine(scores, key, reading)
    if chosen is not None and seen.trials is not None and seen.is_clean:
        refuse_layouts(complete(seen.trials, key, chosen, reading), chosen)  # what `score` would say
    if json:
        printing.out_json(
            {"schema": 1, "clean": seen.is_clean, **printing.plain_object(_report(seen)), **printing.taken()}
        )
    else:
        _print(seen)
    return 0 if seen.is_clean else 3


def _report(seen: Examination) -> dict[str, object]:
    told: dict[str, object] = {"summary": seen.summary, "faults": seen.faults, "fixes": seen.fixes}
    return {**told, "choices": seen.choices} if seen.choices else told


def _print(seen: Examination) -> None:
    from hitmiss.core.convert import fit

    summary = seen.summary
    for file in fit(list[dict[str, object]], summary["files"]):
        columns = ", ".join(f"{ours}={theirs}" for ours, theirs in fit(dict[str, str], file["columns"]).items())
        printing.out(f"{file['name']}: {file['rows']:,} rows, {file['layout']}, {file['encoding']} ({columns})")
    if seen.trials is not None:
        classes = ", ".join(f"{n:,} {name}" for name, n in fit(dict[str, int], summary["classes"]).items())
        printing.out(f"{summary['trials']:,} trials: {classes}; positive = {summary['positive']}")
    for role in ("runs", "slices"):
        for name, found in fit(dict[str, dict[str, object]], summary.get(role, {})).items():
            printing.out(f"{role[:-1]} {name}: {_values(found)}")
    for note in fit(list[object], summary["notes"]):  # sentences that keep their findings
        printing.out(f"note: {note}")
    for fault in seen.faults:
        printing.out(f"{fault.kind}: {fault}")
    for kind, fix in seen.fixes.items():
        printing.out(f"to fix {kind}: {fix}")
    for choice in seen.choices:
        printing.out(f"  {shlex.join(option_words(choice))}")
    printing.out(f"{len(seen.faults):,} fault{'' if len(seen.faults) == 1 else 's'}" if seen.faults else "no faults")


def _values(found: dict[str, object]) -> str:
    from hitmiss.core.convert import fit

    shown, n_all = list(fit(dict[object, int], found["commonest"]).items())[:SHOWN_VALUES], fit(int, found["values"])
    dots = f", … {n_all:,} in all" if n_all > len(shown) else ""
    return ", ".join(f"{value or '(empty)'} {n:,}" for value, n in shown) + dots
