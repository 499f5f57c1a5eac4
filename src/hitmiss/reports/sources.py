"""The sources of a report or an export, as a user writes them: results files, folders of them, or scores with a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from hitmiss.claims.open import is_results, name_runs, open_run, split_choice
from hitmiss.core import progress
from hitmiss.core.columns import user_name
from hitmiss.core.design import Design, TriageRules, parse_by
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Option, Remark
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.natural_unit import with_natural_unit
from hitmiss.evaluation.protocol import decided as decide
from hitmiss.evaluation.protocol import find_protocol, measure_trials, protocols
from hitmiss.io.logs.opening import find_tool
from hitmiss.io.people import read_verdicts
from hitmiss.protocols.triage import TriageExtras, evaluate_design, extras_of
from hitmiss.reports.dossier import dossier_of
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.item_texts import Texts, rationales_beside, texts_of_predictions
from hitmiss.reports.media_finder import COLUMNS, MediaFinder, finder_of, lossless
from hitmiss.reports.pictures import load_whole, pictures
from hitmiss.reports.worst_errors import TEXTS
from hitmiss.runs.manifest import MANIFEST
from hitmiss.verdicts.people import evaluate_teamwork
from hitmiss.verdicts.stability import is_repeated

MOST_SLICES: Final = 40
"""A column with more values than this is not used as a domain unless asked for."""
MOST_GROUPINGS: Final = 6
NAMELESS: Final = ("results", "run", "trials")
"""Names that do not identify a run."""
CROSSED: Final = (("codec", "codec_q"), ("attack", "codec"), ("attack", "strength"), ("language", "identity"))
"""Pairs of columns that are more informative together than alone."""


@dataclass(frozen=True)
class Measuring:
    """How scores are measured for a report."""

    design: Design = field(default_factory=Design)
    reading: ReadSpec = field(default_factory=ReadSpec)
    media: tuple[str, ...] = ()
    human: str | None = None
    """A file with verdicts of people on the items of a triage."""
    lossless: bool = False
    """Whether sounds are kept sample for sample and not coded again."""


def open_sources(
    texts: Sequence[str], keys: Sequence[str], measuring: Measuring, names: Sequence[str] = ()
) -> list[RunData]:
    """Open every run that was named: a results file as it is, scores measured now."""
    split = [split_protocol(text) for text in texts]
    paths = [path for _, text in split for path in _expanded(text)]
    own = {
        path: replace(measuring, design=replace(measuring.design, protocol=p))
        for p, text in split
        if p is not None
        for path in _expanded(text)
    }
    scored = [p for p in paths if not is_results(p)]
    if len(keys) not in (0, 1, len(scored)):
        raise UsageError.of("option-count", option=Option("key"), n=len(keys), total=len(scored))
    if names and len(names) != len(paths):
        raise UsageError.of("option-count/names", n=len(names), total=len(paths))
    key_of = dict(zip(scored, list(keys) * (len(scored) if len(keys) == 1 else 1), strict=False))
    called = list(names) or [_short(n, p) for n, p in zip(name_runs(paths), paths, strict=True)]
    pairs = list(zip(paths, called, strict=True))
    found = [_open(p, n, key_of.get(p), own.get(p, measuring)) for p, n in progress.each(pairs, "runs")]
    if measuring.human is not None and not any(s.extras is not None and s.extras.people is not None for s in found):
        name = Path(measuring.human).name
        raise UsageError.of("unused-human", name=name)
    return found


def of_results(results: Results, name: str) -> RunData:
    """Return results of this process for a report, with curves if their trials are still there."""
    trials = results.behind if isinstance(results.behind, Trials) else None
    return RunData(name, results, tuple(pictures(trials, results)) if trials is not None else (), trials)


def split_protocol(text: str) -> tuple[Protocol | None, str]:
    """Split `toxicity=predictions:baseline` into protocol and run; if a file has this whole name, it is that file.

    >>> protocol, rest = split_protocol("toxicity=predictions:baseline")
    >>> protocol.name, rest
    ('toxicity', 'predictions:baseline')
    >>> split_protocol("scores.tsv")
    (None, 'scores.tsv')
    """
    name, equals, rest = text.partition("=")
    if not equals or Path(text).exists() or name not in protocols():
        return None, text
    return find_protocol(name), rest


def open_results(texts: Sequence[str], names: Sequence[str] = ()) -> list[RunData]:
    """Open results files, and refuse anything that would have to be measured first."""
    for path in (path for text in texts for path in _expanded(text)):
        if not is_results(path):
            kind = "is not there" if not Path(path).exists() else "holds no results"
            raise DataError.of("no-results/export", name=Path(path).name, kind=kind)
    return open_sources(texts, [], Measuring(), names)


def _expanded(text: str) -> list[str]:
    """Expand a folder of results to its results files; leave everything else as it is."""
    folder = Path(text)
    if not folder.is_dir() or (folder / MANIFEST).is_file() or find_tool(folder) is not None:
        return [text]
    inside = sorted(str(p) for p in folder.rglob("*.json") if is_results(p))
    if not inside:
        raise DataError.of("no-results/folder", folder_name=folder.name)
    return inside


def _short(name: str, path: str = "") -> str:
    """Return a run's name without its file extension; a run called results or run is named after its folder.

    >>> _short("main/results.json"), _short("scores_a.tsv.gz"), _short("run", "demo/ecg/run")
    ('main', 'scores_a', 'ecg')
    """
    for ending in (".gz", ".json", ".jsonl", ".tsv", ".csv", ".txt"):
        name = name.removesuffix(ending)
    if name in NAMELESS:
        return Path(path).resolve().parent.name or name
    for last in NAMELESS:
        name = name.removesuffix(f"/{last}")
    return name


def _open(path: str, name: str, key: str | None, measuring: Measuring) -> RunData:
    if is_results(path):
        results, drawn, data = load_whole(path)
        if not len(results):
            raise DataError.of("no-results/holds-figure", name=Path(path).name)
        made = RunData(name, results, tuple(drawn), dossier=dossier_of(path), extras=TriageExtras.from_dict(data))
        return _marked(made, path)
    is_json = Path(path).suffix == ".json" and Path(path).is_file()
    if is_json and measuring.reading.layout is None and find_tool(Path(path)) is None:
        raise DataError.of("no-results/holds", name=Path(path).name)
    trials = open_run(path, key, measuring.design.protocol, measuring.reading)
    made = replace(
        measured(trials, name, measuring),
        finder=_finder(path, trials, measuring),
        dossier=dossier_of(split_choice(path)[0]),
        rationales=rationales_beside(split_choice(path)[0]),
        texts=_texts(path, measuring),
    )
    return _marked(made, split_choice(path)[0])


SIMULATED: Final = "SIMULATED"
"""How the first line of README.txt begins, which every simulator of hitmiss writes next to its data."""


def _marked(made: RunData, path: str) -> RunData:
    """Add a warning to the run if a README.txt next to its files, or one folder above, says that they are simulated."""
    place = Path(path).resolve()
    for folder in (place, place.parent, place.parent.parent):
        readme = folder / "README.txt"
        if readme.is_file() and SIMULATED in readme.read_text(encoding="utf-8", errors="replace").partition("\n")[0]:
            results = replace(
                made.results, warnings=(*made.results.warnings, Remark.of("data-simulated", name=made.name))
            )
            return replace(made, results=results)
    return made


def _texts(path: str, measuring: Measuring) -> Texts | None:
    """Return the texts of prediction files, which the trials do not keep."""
    protocol, (folder, colon, tag) = measuring.design.protocol, path.rpartition(":")
    named = protocol is not None and bool(protocol.reader) and bool(colon) and Path(folder).is_dir()
    return texts_of_predictions(folder, tag) if named else None


def _finder(path: str, trials: Trials, measuring: Measuring) -> MediaFinder | None:
    """Return where the files are: as the user says, else as the run records it."""
    found = finder_of(split_choice(path)[0], trials, measuring.media)
    return lossless(found) if measuring.lossless else found


def measured(trials: Trials, name: str, measuring: Measuring) -> RunData:
    """Measure trials for a report: the protocol's metrics, split by the columns that look like domains."""
    design, protocol = measuring.design, measuring.design.protocol
    decided = decide(trials, design)
    design = replace(design, by=design.by or parse_by(groupings_of(decided, protocol, design.units)))
    extras = _extras(decided, protocol, measuring) if protocol is not None and protocol.verdicts else None
    if extras is not None and is_repeated(decided):
        results = evaluate_design(decided, replace(design, gap="none", undefined="null", triage=TriageRules())).figures
    else:
        results = measure_trials(decided, design)
    if not len(results):
        raise UsageError.of("no-figures", name=name)
    people = _people(decided, measuring) if extras is not None and extras.people is not None else {}
    return RunData(name, results, tuple(pictures(decided, results)), decided, extras=extras, people=people)


def _people(trials: Trials, measuring: Measuring) -> dict[str, str]:
    """Return the verdicts of people on each item, in words."""
    assert measuring.human is not None
    head = trials.header
    reviews = read_verdicts(measuring.human, head.positive, head.negative).reviews
    words = {1: head.positive, 0: head.negative}
    said: dict[str, list[str]] = {}
    for item, who, decision in reviews.select("item", "reviewer", "decision").iter_rows():
        said.setdefault(str(item), []).append(f"{who}: {words.get(decision, 'cannot tell')}")
    return {item: ", ".join(own) for item, own in said.items()}


def _extras(trials: Trials, protocol: Protocol, measuring: Measuring) -> TriageExtras | None:
    """Return the additional parts of a triage, with what people add if given; None without verdicts."""
    if "decision" not in trials.frame.columns:
        return None
    design = with_natural_unit(measuring.design, trials)
    plan = SamplingPlan(design.bootstrap, design.units, design.seed, design.level)
    found = extras_of(trials, protocol, plan)
    if measuring.human is None:
        return found
    said = read_verdicts(measuring.human, trials.header.positive, trials.header.negative)
    if not set(said.frame["item"]) & set(trials.items):
        return found  # with several runs, people may have judged the items of another one
    return replace(found, people=evaluate_teamwork(trials, said, plan))


def groupings_of(trials: Trials, protocol: Protocol | None = None, unit: Sequence[str] = ()) -> list[str]:
    """Return the columns worth splitting by: few values, but more than one; and pairs of them that belong together.

    A column with a warning in the protocol is used only together with another one. A column whose units are resampled as
    a whole is not used, because a slice of one unit says nothing about other units.

    >>> t = Trials.of([1, 0, 1, 0], [1.0, 2.0, 3.0, 0.0], codec=["A", "A", "B", "B"], codec_q=["1", "2", "1", "2"], speaker=["w", "x", "y", "z"])
    >>> groupings_of(t)
    ['codec', 'codec_q', 'speaker', 'codec,codec_q']
    """
    counts = {
        user_name(name): trials.frame[name].n_unique()
        for name in trials.header.slices
        if name not in (*TEXTS, *COLUMNS)
    }
    fit = [name for name, n in counts.items() if 1 < n <= MOST_SLICES and name not in unit]
    alone = [name for name in fit if protocol is None or name not in protocol.remarks][:MOST_GROUPINGS]
    return [*alone, *(f"{a},{b}" for a, b in CROSSED if a in fit and b in fit)]
