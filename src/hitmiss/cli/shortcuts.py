"""`hitmiss shortcuts`: measure how well duration, silence and level alone separate the classes of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hitmiss.cli import common
from hitmiss.cli.common import grouped
from hitmiss.core.read_spec import ReadSpec


@grouped(reading=common.without(common.reading, "settings"))
def shortcuts(
    data: Annotated[str, typer.Argument(help="Manifest: a table with the file and the label of each clip.")],
    by: Annotated[list[str] | None, typer.Option(help="Slice column, `attack`; may be repeated.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Column whose values stay together in folds and intervals, `speaker`.")
    ] = None,
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="How labels are read.")] = "deepfake-audio",
    root: Annotated[Path | None, typer.Option(help="Folder of the files (default: the manifest's).")] = None,
    suffix: Annotated[str, typer.Option(help="Added to each file name, such as .flac.")] = "",
    bootstrap: Annotated[int, typer.Option(help="Replicates of the bootstrap; 0 for none.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    *,
    reading: ReadSpec,
    json: Annotated[bool, typer.Option("--json", help="JSON to stdout instead of tables.")] = False,
) -> None:
    """Measure AUC and EER of duration, silence and level alone. A detector must do better to show that it is useful."""
    from hitmiss.evaluation.protocol import find_protocol
    from hitmiss.io.manifest import OF_MANIFESTS, read_manifest
    from hitmiss.io.reader import refuse_unread
    from hitmiss.probes.shortcuts import read_features, shortcut_probe
    from hitmiss.reports import result_tables, terminal
    from hitmiss.reports.shortcut_table import shortcut_table

    refuse_unread(reading, OF_MANIFESTS, "is about scores, and a manifest has none")
    options = reading.changed(where=common.either(reading.where)).over(find_protocol(protocol).read)
    manifest = read_manifest(data, root=root, suffix=suffix, options=options)
    features = read_features(manifest)
    results = shortcut_probe(manifest, features, by=by or (), unit=unit, bootstrap=bootstrap, seed=seed)
    if json:
        common.out_document(results.to_json())
        return
    terminal.write_tables(
        [result_tables.overall_table(results, manifest.positive), *(shortcut_table(results, name) for name in by or ())]
    )
    for warning in results.warnings:
        common.out(f"\n! {warning}")
    common.out(f"\n{results.signature}")
