"""`hitmiss lock`: seal the criteria of a test before the test."""

from __future__ import annotations

from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON
from hitmiss.core.design import Design
from hitmiss.core.spec import READING, WRITING, opt

OUT = "Write the locked criteria (JSON) here; default: the first file's name with .lock.json."
KEPT = ("protocol", "metrics", "matrix", "gap", "interval", "stratify", "threshold", "require")


def lock(
    requirements: Annotated[list[str], arg("requirements.toml, or requirements such as 'eer.high <= 0.05'.")],
    data: Annotated[
        list[str] | None,
        opt("A file that must stay as it is, such as the key of the test set; may be repeated.", READING, common=True),
    ] = None,
    output: Annotated[str | None, opt(OUT, WRITING, "--output", "-o", metavar="FILE", common=True)] = None,
    *,
    asked: Annotated[Design, fields(without=KEPT, bootstrap=1000)],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Seal requirements with their level, unit, slices and data before a test; `--sign KEY` says who states them.

    $ hitmiss lock requirements.toml --data key.tsv --unit speaker
    """
    from pathlib import Path

    from hitmiss.claims.criteria import lock_criteria, save_criteria

    made = lock_criteria(requirements, asked, data or [])
    first = Path(requirements[0])
    place = output or (f"{first.stem}.lock.json" if first.suffix == ".toml" else "requirements.lock.json")
    save_criteria(made, place)
    if json:
        printing.out_json(made.plain)
        return
    for text in made.require:
        printing.out(text)
    printing.out(f"\nlocked {made.stated_at} (stated, not proved), digest {made.plain['digest']}")
    printing.note(f"wrote {place}; give it as --require {place} to score, gate and report")
