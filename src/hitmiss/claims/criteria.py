"""Criteria that come before the test: requirements with level, unit, slices and data, sealed with the time that is stated.

The file of locked criteria is given wherever requirements are (`--require criteria.json`). A time that nobody else has
stamped is stated, not proved; a signature of the file shows who states it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.core.criteria import KIND, SCHEMA, Criteria
from hitmiss.core.design import Design
from hitmiss.core.finding import Remark
from hitmiss.core.results import Results
from hitmiss.engine.requirement import read_requirements
from hitmiss.runs.manifest import MANIFEST, load_manifest

MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"


def lock_criteria(require: Sequence[str], design: Design, data: Iterable[str | Path] = ()) -> Criteria:
    """Return criteria as they are stated now.

    Parameters
    ----------
    require
        Requirements, or files of them.
    design
        Level, unit, slices, draws and seed that they are to be measured with.
    data
        Files that must stay as they are, such as the key of the test set.
    """
    texts = tuple(map(str, read_requirements(list(require))))
    files = {Path(path).name: _sha(Path(path)) for path in data}
    by = tuple(",".join(group) for group in design.by)
    now = datetime.now(UTC).strftime(MOMENT)
    return Criteria(
        SCHEMA, KIND, __version__, now, texts, design.level, design.unit, by, design.bootstrap, design.seed, files
    )


def save_criteria(criteria: Criteria, path: str | Path) -> None:
    """Write criteria to a file with a digest over all of it."""
    artifacts.write(path, json.dumps(criteria.plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def remarks_on(
    results: Results,
    criteria: Criteria | None = None,
    written: str | Path | None = None,
    files: Iterable[str | Path] = (),
) -> Iterator[Remark]:
    """Yield whether criteria came before some results, and everything that changed since.

    Parameters
    ----------
    results
        The results.
    criteria
        What was locked; by default what the results name. Results that name them were made after them.
    written
        The file of the results, or the folder of their run, for its time.
    files
        The files that the results are recomputed from, where they are at hand: the locked data must be among them.
    """
    design = results.design or Design()
    named = design.criteria
    criteria = criteria or named
    if criteria is None:
        return
    digest = str(criteria.plain[artifacts.DIGEST])  # of what it says, not what it says about itself
    short = digest[: artifacts.SHORT]
    when = None if written is None else _written(Path(written))
    if named is not None and named.plain[artifacts.DIGEST] == digest:
        yield Remark.of("criteria-named", digest=short, locked=criteria.stated_at)
    elif when is None or written is None:
        yield Remark.of("criteria-undated", digest=short, locked=criteria.stated_at)
    else:
        code = "criteria-before" if criteria.stated_at <= when else "criteria-after"
        yield Remark.of(code, digest=short, locked=criteria.stated_at, name=Path(written).name, written=when)
    pairs = {
        "level": (criteria.level, design.level),
        "unit": (" × ".join(criteria.unit) or "none", " × ".join(design.unit) or "none"),
        "replicates": (criteria.bootstrap, design.bootstrap),
        "seed": (criteria.seed, design.seed),
    }
    for what, (before, now) in pairs.items():
        if before != now:
            yield Remark.of("criteria-changed", what=what, before=before, now=now)
    for text in criteria.require:
        if named is not None and text not in design.require:
            yield Remark.of("criteria-changed", what=text, before="required", now="not required")
    missing = {*criteria.by} - {",".join(group) for group in design.by}
    for group in sorted(missing):
        yield Remark.of("criteria-changed", what=f"slices by {group}", before="measured", now="not measured")
    held = {_sha(Path(file)) for file in files if Path(file).is_file()}
    for name, digest in criteria.data.items() if held else ():
        if digest not in held:
            yield Remark.of(
                "criteria-changed", what=f"data {name}", before=digest[: artifacts.SHORT], now="other bytes"
            )


def _written(path: Path) -> str | None:
    """Return when results were written: as their run states, or by the time of the file."""
    if (path / MANIFEST).is_file():
        ended = load_manifest(path).get("ended")
        return str(ended) if ended else None
    file = path / "results.json" if path.is_dir() else path
    if not file.is_file():
        return None
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime(MOMENT)


def _sha(path: Path) -> str:
    artifacts.note_input(path)
    return artifacts.file_digest(path)
