"""What a board is made of: data sets with their keys, and the file of each system for each of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError

__all__ = ["BoardPlan", "Dataset", "files_of_system", "find_keys", "find_plan", "plan_of", "read_plan"]

ALL: Final = "all"
"""The name of the data set of a board that has only one."""
EXTENSIONS: Final = frozenset(
    {".csv", ".tsv", ".txt", ".trl", ".json", ".jsonl", ".ndjson", ".parquet", ".feather", ".arrow", ".xlsx"}
    | {".gz", ".zst", ".bz2", ".xz", ".zip"}
)
"""Endings that are no part of a system's or a data set's name."""
DATASET_FIELDS: Final = ("key", "weight", "protocol", "positive", "title", "id", "revision", "split")
TOP: Final = ("title", "protocol", "rank_by", "datasets", "systems", "submissions", "keys")


@dataclass(frozen=True)
class Dataset:
    """A data set: the file with its true classes, its weight in a weighted average, and what else is stated of it."""

    name: str
    key: str | None = None
    weight: float = 1.0
    protocol: str | None = None
    positive: str | None = None
    title: str = ""
    id: str = ""
    """Where it is published, as `ORG/NAME`, with its revision and its split; for files that others read."""
    revision: str = ""
    split: str = "test"


@dataclass(frozen=True)
class BoardPlan:
    """Data sets, and the score file of each system for each data set. A system without a file for one has a gap there."""

    datasets: tuple[Dataset, ...]
    files: Mapping[str, Mapping[str, str]]
    title: str = ""
    protocol: str | None = None
    rank_by: str | None = None
    unknown: tuple[str, ...] = field(default=())
    """Files that belong to no data set, which a board lists and leaves out."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the data sets."""
        return tuple(d.name for d in self.datasets)


def find_plan(submissions: str | Path, keys: str | Path) -> BoardPlan:
    """Find systems and data sets by the names of files and folders.

    The data sets are those of `keys`: a folder with one file per data set, or the one file of a single data set. The
    submissions lie in `SYSTEM/DATASET.ext`, in `DATASET/SYSTEM.ext`, or, with a single data set, in `SYSTEM.ext`. Which
    of the first two it is follows from the names of the data sets; names that fit both are refused.

    Raises
    ------
    UsageError
        If a folder is missing, there is no submission, or two files have one name.
    """
    folder, truth = Path(submissions), Path(keys)
    if not folder.is_dir():
        raise UsageError.of("no-folder/submissions", folder=folder)
    datasets = find_keys(truth)
    names = {d.name for d in datasets}
    plain = [path for path in _files(folder) if path.resolve() != truth.resolve()]
    folders = sorted(p for p in folder.iterdir() if p.is_dir() and p.resolve() != truth.resolve())
    if plain and len(datasets) > 1:
        raise UsageError.of("no-data-set", plain=plain[0], n_datasets=len(datasets), suffix=plain[0].suffix)
    by_dataset = [p for p in folders if p.name in names]
    if by_dataset and len(by_dataset) < len(folders):
        raise UsageError.of(
            "mixed-folders", by_dataset=by_dataset[0], folders=next(p for p in folders if p not in by_dataset)
        )
    files: dict[str, dict[str, str]] = {}
    unknown: list[str] = []
    for path in folders:
        if not by_dataset:
            files.setdefault(path.name, {})
        for stem, file in _by_stem(_files(path), str(path)).items():
            system, dataset = (stem, path.name) if by_dataset else (path.name, stem)
            if len(datasets) == len(_files(path)) == 1 and not by_dataset:
                dataset = datasets[0].name
            if dataset in names:
                files.setdefault(system, {})[dataset] = file
            else:
                unknown.append(file)
    for system, file in _by_stem(plain, str(folder)).items():
        files.setdefault(system, {})[datasets[0].name] = file
    if not files:
        raise UsageError.of("no-submission", folder=folder)
    return BoardPlan(datasets, files, unknown=tuple(unknown))


def plan_of(
    submissions: str | Path | Sequence[str | Path] | Mapping[str, str | Path | Mapping[str, str | Path]],
    keys: str | Path | Mapping[str, str | Path] | None,
) -> BoardPlan:
    """Return the plan of what a caller gave: folders, a `board.toml`, files of one data set, or files by name."""
    if isinstance(submissions, str | Path):
        if Path(submissions).suffix == ".toml":
            return read_plan(submissions)
        if isinstance(keys, str | Path):
            return find_plan(submissions, keys)
        submissions = {p.name: files_of(p) for p in sorted(Path(submissions).iterdir()) if p.is_dir()}
    if keys is None:
        raise UsageError.of("no-key/say")
    if isinstance(keys, Mapping):
        datasets = tuple(Dataset(str(name), str(key)) for name, key in keys.items())
    else:
        datasets = find_keys(keys)
    if not isinstance(submissions, Mapping):
        submissions = _by_stem([Path(path) for path in submissions], "submissions")
    names, files = {d.name for d in datasets}, {}
    for system, given in submissions.items():
        own = given if isinstance(given, Mapping) else {datasets[0].name: given}
        if not isinstance(given, Mapping) and len(datasets) > 1:
            raise UsageError.of("no-data-set/file", system=system, n_datasets=len(datasets))
        if unknown := next((name for name in own if name not in names), None):
            raise UnknownName(f"data set of {system}", unknown, names)
        files[str(system)] = {str(name): str(path) for name, path in own.items()}
    return BoardPlan(datasets, files)


def files_of(folder: Path) -> dict[str, str]:
    """Return the files of a folder by their names."""
    return _by_stem(_files(folder), str(folder))


def find_keys(keys: str | Path) -> tuple[Dataset, ...]:
    """Return the data sets of a folder with one key for each, or of a single key."""
    truth = Path(keys)
    if not truth.exists():
        raise UsageError.of("no-folder/keys", truth=truth)
    if truth.is_file():
        return (Dataset(ALL, str(truth)),)
    found = _by_stem(_files(truth), "keys")
    if not found:
        raise UsageError.of("no-key/holds", truth=truth)
    return tuple(Dataset(name, path) for name, path in found.items())


def files_of_system(folder: str | Path, datasets: Sequence[Dataset]) -> dict[str, str]:
    """Return the score files of one system by data set; with a single data set, its only file has any name."""
    own = _files(Path(folder))
    if len(datasets) == len(own) == 1:
        return {datasets[0].name: str(own[0])}
    names = {d.name for d in datasets}
    return {name: path for name, path in _by_stem(own, str(folder)).items() if name in names}


def read_plan(path: str | Path) -> BoardPlan:
    """Read a `board.toml`; its paths are relative to it.

        title = "Spring challenge"
        protocol = "asvspoof5"
        rank_by = "average"             # or pooled, or the name of a data set
        submissions = "submissions"     # with `keys`, as on the command line; or everything by name:

        [datasets.itw]
        key = "keys/itw.tsv"
        weight = 2

        [systems.baseline]
        itw = "scores/baseline_itw.tsv"

    Raises
    ------
    UsageError
        If the file does not exist, is no TOML, or has fields that are not those above.
    """
    file = Path(path)
    try:
        stated = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError.of("bad-board/form", file=file, error=error) from None
    for name in stated:
        if name not in TOP:
            raise UnknownName(f"field of {file.name}", name, TOP)
    here = file.parent
    if "submissions" in stated:
        plan = find_plan(here / _text(stated, "submissions", file), here / _text(stated, "keys", file))
    else:
        plan = BoardPlan((), {})
    own = _datasets(stated.get("datasets", {}), file, plan.datasets)
    systems = {name: dict(files) for name, files in plan.files.items()}
    for system, listed in _table(stated.get("systems", {}), "systems", file).items():
        for dataset, score_file in _table(listed, f"systems.{system}", file).items():
            if dataset not in {d.name for d in own}:
                raise UnknownName(f"data set of {system} in {file.name}", dataset, [d.name for d in own])
            systems.setdefault(system, {})[dataset] = str(here / str(score_file))
        systems.setdefault(system, {})
    if not own or not systems:
        raise UsageError.of("bad-board", file=file, part="system" if own else "data set")
    texts = {name: str(stated[name]) for name in ("title", "protocol", "rank_by") if name in stated}
    return BoardPlan(own, systems, unknown=plan.unknown, **texts)


def _datasets(stated: object, file: Path, found: Sequence[Dataset]) -> tuple[Dataset, ...]:
    known = {d.name: d for d in found}
    for name, fields in _table(stated, "datasets", file).items():
        given = _table(fields, f"datasets.{name}", file)
        for one in given:
            if one not in DATASET_FIELDS:
                raise UnknownName(f"field of datasets.{name} in {file.name}", one, DATASET_FIELDS)
        before = known.get(name, Dataset(name))
        weight = given.get("weight", before.weight)
        if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < float("inf"):
            raise UsageError.of("bad-weight/number", file=file, name=name)
        known[name] = Dataset(
            name,
            str(file.parent / str(given["key"])) if "key" in given else before.key,
            float(weight),
            str(given["protocol"]) if "protocol" in given else None,
            str(given["positive"]) if "positive" in given else None,
            **{name: str(given[name]) for name in ("title", "id", "revision", "split") if name in given},
        )
    return tuple(known.values())


def _table(value: object, name: str, file: Path) -> dict[str, object]:
    if not isinstance(value, dict):
        raise UsageError.of("bad-board/table", file=file, name=name)
    return value


def _text(stated: Mapping[str, object], name: str, file: Path) -> str:
    value = stated.get(name)
    if not isinstance(value, str):
        raise UsageError.of("bad-board/path", file=file, name=name)
    return value


def name_of(path: Path) -> str:
    """Return the name of a file without its extensions; a dot inside a name stays.

    >>> name_of(Path("v1.2.tsv.gz")), name_of(Path("itw.csv")), name_of(Path("scores"))
    ('v1.2', 'itw', 'scores')
    """
    name = path.name
    while (cut := name.rpartition("."))[0] and f".{cut[2].lower()}" in EXTENSIONS:
        name = cut[0]
    return name


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder, `d2` before `d10`."""
    found = [p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")]
    return sorted(found, key=lambda p: [(not t.isdigit(), int(t) if t.isdigit() else 0, t) for t in _parts(p.name)])


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"([0-9]+)", name) if part]


def _by_stem(files: Iterable[Path], where: str) -> dict[str, str]:
    """Return files by their names without extensions; two of one name are refused."""
    found: dict[str, str] = {}
    for path in files:
        stem = name_of(path)
        if stem in found:
            raise UsageError.of("same-name/counts", where_2=where, name=Path(found[stem]).name, path_name=path.name)
        found[stem] = str(path)
    return found
