"""`hitmiss probe`: measure how well the domain can be predicted from fixed embeddings, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.core.results import Results

ABOUT_EMBEDDINGS = "Embeddings: .npz, .safetensors or .parquet; one or several layers."
ABOUT_LABELS = "Column with the domain to predict, in the file or in the key (codec, language, …)."
ABOUT_GROUPS = "Column whose values no two folds share (codec_seed, speaker, …)."
ABOUT_IDS = "Column of the embeddings that holds the item ids, for --key."
ABOUT_KEY = "Table about the items, joined on their ids: with a header, or an ASVspoof 5 protocol."


def probe(
    embeddings: Annotated[Path, arg(ABOUT_EMBEDDINGS)],
    labels: Annotated[str, opt(ABOUT_LABELS, metavar="COLUMN", common=True)],
    groups: Annotated[str | None, opt(ABOUT_GROUPS, metavar="COLUMN", common=True)] = None,
    key: Annotated[Path | None, opt(ABOUT_KEY, READING, metavar="FILE", common=True)] = None,
    ids: Annotated[str | None, opt(ABOUT_IDS, metavar="COLUMN")] = None,
    layer: Annotated[list[str] | None, opt("Probe this layer only; may be repeated.", common=True)] = None,
    folds: Annotated[int, opt("How many folds to cross-validate over.")] = 5,
    shuffles: Annotated[int, opt("How many shufflings of the labels to average over; 0 for none.")] = 5,
    scale: Annotated[bool, opt("Standardise each dimension inside each fold.")] = True,
    *,
    asked: Annotated[Design, fields("unit", "seed", "level")],
    plot: Annotated[
        Path | None, opt("Draw the curve: .png, .svg or .pdf.", WRITING, metavar="FILE", common=True)
    ] = None,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Measure how well a linear probe predicts the domain from fixed embeddings; lower is more domain-invariant.

    $ hitmiss probe embeddings.npz --key key.tsv --labels codec
    """
    from hitmiss.core.errors import UnknownName
    from hitmiss.io.embeddings import OF_KEYS, load_embeddings, read_key
    from hitmiss.io.reader import refuse_unread
    from hitmiss.probes.domain import probe_layers
    from hitmiss.reports.probe_figure import check_format, plot_probe

    if plot is not None:
        check_format(plot)
    refuse_unread(reading, OF_KEYS if key is not None else ("where",), "does not apply to embeddings or to their --key")
    loaded = load_embeddings(embeddings)
    if key is not None:
        about = read_key(key, reading.changed(where={}))
        loaded = loaded.joined(about, ids, by_stem=reading.matching == "stem")
    loaded = loaded.where(reading.where)
    for name in layer or ():
        if name not in loaded.layers:
            raise UnknownName("layer", name, loaded.layers)
    results = probe_layers(
        {name: x for name, x in loaded.layers.items() if not layer or name in layer},
        loaded.column(labels),
        groups=None if groups is None else loaded.column(groups),
        unit=loaded.column(_one_unit(asked)) if asked.unit else None,
        unit_name=asked.unit[0] if asked.unit else "",
        folds=folds,
        seed=asked.seed,
        level=asked.level,
        shuffles=shuffles,
        standardise=scale,
        data=loaded.digest,
    )
    if plot is not None:
        plot_probe(results, plot)
        printing.note(f"wrote {plot}")
    if json:
        printing.out_document(results.to_json())
    else:
        _print(results, labels, groups, asked.level)


def _one_unit(asked: Design) -> str:
    from hitmiss.core.errors import UsageError

    if len(asked.unit) > 1:
        raise UsageError.of("bad-unit/probe", unit=tuple(asked.unit))
    return asked.unit[0]


def _print(results: Results, labels: str, groups: str | None, level: float) -> None:
    from hitmiss.core.results import interval, number

    names = {"accuracy": "probe_accuracy", "balanced": "probe_balanced_accuracy"}
    names |= {"largest class": "probe_majority", "shuffled": "probe_shuffled"}
    rows = []
    for row in (e for e in results if e.metric == "probe_accuracy"):
        found = {title: results.one(metric, **row.slice) for title, metric in names.items()}
        values = [number(e.value) if e.value is not None else "-" for e in found.values()]
        rows.append([row.slice["layer"], values[0], interval(row).strip(), *values[1:]])
    first = results.estimates[0]
    how = first.method or "no interval"
    printing.out(f"probe of {labels}, {first.n} items, {first.settings['folds']} folds, {how}")
    printing.out_table(["layer", "accuracy", f"{level:.0%}", *list(names)[1:]], rows)
    if groups is None:
        printing.note("no --groups: copies of one utterance, or one speaker, may be in several folds")
    for warning in results.warnings:
        printing.note(f"warning: {warning}")
    printing.note(results.signature)
