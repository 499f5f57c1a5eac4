"""`hitmiss shortcuts`: measure how well duration, silence and level alone separate the classes of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, RULES, field_option
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.run_spec import ROOT, SUFFIX
from hitmiss.core.spec import CERTAINTY, MEASURING, opt


def shortcuts(
    data: Annotated[str, arg("Manifest: a table with the file and the label of each clip.")],
    by: Annotated[list[str] | None, opt("Slice column, `attack`; may be repeated.", MEASURING, common=True)] = None,
    unit: Annotated[
        str | None, opt("Column whose values stay together in folds and intervals, `speaker`.", CERTAINTY, common=True)
    ] = None,
    protocol: Annotated[str, RULES] = "deepfake-audio",
    root: Annotated[Path | None, ROOT] = None,
    suffix: Annotated[str, SUFFIX] = "",
    bootstrap: Annotated[int, field_option(Design, "bootstrap")] = 0,
    seed: Annotated[int, field_option(Design, "seed")] = 0,
    *,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Measure AUC and EER of duration, silence and level alone. A detector must do better to show that it is useful.

    $ hitmiss shortcuts eval.tsv --by seconds
    """
    from hitmiss.evaluation.protocol import find_protocol
    from hitmiss.io.manifest import OF_MANIFESTS, read_manifest
    from hitmiss.io.reader import refuse_unread
    from hitmiss.probes.shortcuts import read_features, shortcut_probe
    from hitmiss.reports import result_tables, terminal
    from hitmiss.reports.shortcut_table import shortcut_table

    refuse_unread(reading, OF_MANIFESTS, "is about scores, and a manifest has none")
    options = reading.changed(where=printing.either(reading.where)).over(find_protocol(protocol).read)
    manifest = read_manifest(data, root=root, suffix=suffix, options=options)
    features = read_features(manifest)
    results = shortcut_probe(manifest, features, by=by or (), unit=unit, bootstrap=bootstrap, seed=seed)
    if json:
        printing.out_document(results.to_json())
        return
    terminal.write_tables(
        [result_tables.overall_table(results, manifest.positive), *(shortcut_table(results, name) for name in by or ())]
    )
    for warning in results.warnings:
        printing.out(f"\n! {warning}")
    printing.out(f"\n{results.signature}")
