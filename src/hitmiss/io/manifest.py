"""Manifests list what a detector is run on: the file of each item, its class, and further columns.

    file        label   speaker  codec
    a/1.flac    real    S1       -
    a/2.flac    fake    S2       C01

Manifests are read like keys: text stays text, every fault has its place. The label may be absent (a blind test set);
all other columns become slices of the trials. A folder with one subfolder per class is a manifest too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core.classes import Reading
from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError
from hitmiss.core.finding import Place
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import loaded
from hitmiss.io.checks import check_ids, check_repeats
from hitmiss.io.columns import FILES, refuse_undeclared
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.labels import check_labels, understand
from hitmiss.io.sides import look, open_side
from hitmiss.io.where import keep_rows

RESERVED: Final = ("score", "probability", "decision", "confidence", "error", "target", "seconds", "windows")
"""Columns that a run writes itself."""
SOURCE: Final = "source"
OF_MANIFESTS: Final = (
    *("columns", "positive", "negative", "positive_value", "where", "dedupe", "layout", "separator", "encoding"),
    "decimal",
)
"""The options that apply to a manifest."""


@dataclass(frozen=True, eq=False)
class Manifest:
    """Rows with `item`, `file`, optionally `label` (the class by name), and further text columns."""

    frame: pl.DataFrame
    positive: str = "positive"
    negative: str = "negative"
    root: Path | None = None

    def __len__(self) -> int:
        return self.frame.height

    @property
    def items(self) -> list[str]:
        """The ids, in order."""
        return self.frame["item"].to_list()

    @property
    def slices(self) -> tuple[str, ...]:
        """The columns about the items other than the label."""
        return tuple(c for c in self.frame.columns if c not in ("item", "file", "label"))

    @property
    def has_labels(self) -> bool:
        """Whether the classes are known."""
        return "label" in self.frame.columns

    @property
    def digest(self) -> str:
        """A short hash of the whole content of the manifest."""
        sha = hashlib.sha256(repr((self.frame.columns, self.positive, self.negative)).encode())
        for row in self.frame.iter_rows():
            sha.update("\x1f".join(map(str, row)).encode("utf-8", "surrogatepass") + b"\x1e")
        return sha.hexdigest()[:16]

    def row(self, at: int) -> dict[str, str]:
        """Return one row as a mapping."""
        return self.frame.row(at, named=True)

    def where(self, **values: str) -> Manifest:
        """Return the rows whose columns have these values (separate several values by commas)."""
        for name in values:
            if name not in self.frame.columns:
                raise UnknownName("column of the manifest", name, self.frame.columns)
        kept = self.frame.filter(*(pl.col(c).is_in(v.split(",")) for c, v in values.items()))
        if not kept.height:
            raise DataError.of("no-rows/manifest", values_2=", ".join((f"{k}={v}" for k, v in values.items())))
        return replace(self, frame=kept)

    def first(self, n: int) -> Manifest:
        """Return the first n rows."""
        return replace(self, frame=self.frame.head(n))

    def crossed(self, conditions: Sequence[Mapping[str, str]]) -> Manifest:
        """Return every item under every condition, such as codec × quality.

        Ids become `item@values`; `source` keeps the original item.

        >>> m = Manifest(pl.DataFrame({"item": ["a"], "file": ["a.wav"], "codec": ["-"]}))
        >>> m.crossed([{"codec": "NONE"}, {"codec": "C01", "codec_q": "3"}]).frame["item"].to_list()
        ['a@NONE', 'a@C01-3']
        """
        names = list(dict.fromkeys(name for condition in conditions for name in condition))
        kept = self.frame.drop([n for n in (*names, SOURCE) if n in self.frame.columns])
        parts = [
            kept.with_columns(
                pl.col("item").alias(SOURCE),
                (pl.col("item") + f"@{'-'.join(condition.values())}").alias("item"),
                *(pl.lit(condition.get(name, "-")).alias(name) for name in names),
            )
            for condition in conditions
        ]
        return replace(self, frame=pl.concat(parts))


def inside(root: Path | None, file: str) -> Path:
    """Return the path of a manifest's file inside its folder; refuse a path that leads out of it (`../x` or a link).

    >>> inside(None, "a.wav").name
    'a.wav'
    """
    if root is None:
        return Path(file)
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()):
        fault = Fault("path-outside", "the path leads out of the folder of the files", value=file)
        raise DataError.of("path-outside", file=file).at(fault)
    return path


def has_files(manifest: Manifest) -> bool:
    """Return whether the rows name existing files, judged by the first row; rows with texts in a column have none."""
    if manifest.root is None or not len(manifest):
        return False
    try:
        return inside(manifest.root, manifest.row(0)["file"]).is_file()
    except (DataError, OSError, ValueError):
        return False


def read_manifest(
    source: object,
    *,
    root: str | Path | None = None,
    suffix: str = "",
    file_column: str | None = None,
    options: ReadSpec | None = None,
    are_labels_read: bool = True,
) -> Manifest:
    """Read a manifest from a file, a frame, or a folder with one subfolder per class (`real/1.jpg`, `fake/a/2.jpg`).

    Paths are relative to `root` (by default the manifest's folder); `suffix` is added to each (`.flac`). `file_column`
    names the column of paths if it is not the id. Labels are interpreted as everywhere (`options` declares classes), or
    left as they are where only the files are wanted.

    >>> rows = {"file": ["1.wav", "2.wav"], "label": ["bonafide", "spoof"], "codec": ["-", "C01"]}
    >>> m = read_manifest(pl.DataFrame(rows))
    >>> m.items, m.positive, m.slices
    (['1.wav', '2.wav'], 'bonafide', ('codec',))
    """
    wanted, ledger = options or ReadSpec(), Diagnostics()
    if isinstance(source, str | Path) and Path(source).is_dir():
        root = source if root is None else root
        source = _of_folder(Path(source))
    try:
        side = open_side([look(source, "key", wanted, ledger)], "manifest", wanted, ledger)
        refuse_undeclared(wanted, tuple(side.names), side.shapes[0].name, ledger)
        stack = keep_rows(side.stack, side.match, wanted)
        reading = _labels(stack, wanted) if are_labels_read and "label" in stack.frame.columns else None
        frame = _checked(stack, reading, wanted, ledger)
    except Stop:
        raise ledger.error() from None
    if ledger.findings:
        raise ledger.error()
    is_id = file_column is not None and file_column == stack.title("item")  # the paths may be the ids
    frame = _with_files(frame, "item" if is_id else file_column, suffix)
    base = Path(root) if root is not None else Path(source).parent if isinstance(source, str | Path) else None
    positive = reading.positive if reading else wanted.positive or "positive"
    negative = reading.negative if reading else wanted.negative or "negative"
    return Manifest(frame, positive, negative, base)


def _of_folder(folder: Path) -> pl.DataFrame:
    """List the files of a folder with one subfolder per class; hidden files are left out."""
    classes = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    rows = [
        (file.relative_to(folder).as_posix(), one.name)
        for one in classes
        for file in sorted(one.rglob("*"))
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]
    if not rows:
        raise UsageError.of("no-classes", folder=folder)
    return pl.DataFrame(rows, schema=["file", "label"], orient="row")


def _labels(stack: loaded.LoadedRows, options: ReadSpec) -> Reading:
    words = stack.frame["label"].unique().sort().to_list()
    return understand(words, options.positive, options.negative, options.positive_value)


def _checked(stack: loaded.LoadedRows, reading: Reading | None, options: ReadSpec, ledger: Diagnostics) -> pl.DataFrame:
    check_ids(stack, ledger)
    stack = check_repeats(stack, ["item"], True, options, ledger)
    if reading is not None:
        stack = check_labels(stack, "label", reading, ledger)
        if not ledger.findings:
            named = pl.when(pl.col("label") == 1).then(pl.lit(reading.positive)).otherwise(pl.lit(reading.negative))
            stack = stack.put(named.alias("label"))
    clash = [name for name in stack.frame.columns if name in RESERVED]
    if clash:
        place = Place(stack.tables[0].name, 1)
        raise ledger.stop("reserved-column", [place], clash[0], name=clash[0])
    return stack.frame


def _with_files(frame: pl.DataFrame, column: str | None, suffix: str) -> pl.DataFrame:
    named = column or next((name for name in FILES if name in frame.columns), "item")
    if named not in frame.columns:
        raise UsageError.of("missing-column/files", named=named, columns=tuple(frame.columns))
    kept = frame if named == "item" else frame.drop(named)
    return kept.with_columns((frame[named] + suffix).alias("file"))
