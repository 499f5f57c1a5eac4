"""`hitmiss drift`: FAR and FRR of coded or manipulated clips at the threshold that was fixed on the clean ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hitmiss.cli import common
from hitmiss.cli.common import grouped, without
from hitmiss.core.design import Design, Drift, parse_by
from hitmiss.core.read_spec import ReadSpec


@grouped(
    asked=partial(
        without(common.design, "protocol", "metric", "by", "matrix", "interval", "stratify", "gap"), bootstrap=1000
    ),
    reading=common.reading,
)
def drift(
    scores: Annotated[str, typer.Argument(help="A run folder of `hitmiss detect`, or a score file with labels.")],
    by: Annotated[
        str, typer.Option(help="Column(s) of the conditions: `manipulation`, `codec,codec_q`.")
    ] = "manipulation",
    key: Annotated[str | None, typer.Option(help="Key file with the labels.")] = None,
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", "-p", help="How a file is read (deepfake-audio); a run folder needs none."),
    ] = None,
    *,
    asked: Design,
    reading: ReadSpec,
    clean: Annotated[str | None, typer.Option(help="The value of untouched clips (default: clean, NONE or -).")] = None,
    pair_by: Annotated[str | None, typer.Option(help="Column that links a clip's copies (default: source).")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="A threshold chosen elsewhere; score > t is accepted.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="One condition at a time: the run folder need not fit into memory.")
    ] = False,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write the results (JSON) here too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON to stdout instead of a table.")] = False,
) -> None:
    """Show FAR and FRR per condition at one fixed threshold, their drift from clean clips, and the score shift."""
    from hitmiss.conclude.verdict import conclude
    from hitmiss.evaluation.protocol import find_protocol, read_trials
    from hitmiss.reports import terminal
    from hitmiss.reports.drift_table import drift_table
    from hitmiss.robustness.manipulation import drift_of

    knows_itself = protocol is None and Path(scores).is_dir()
    rules = None if knows_itself else find_protocol(protocol or "deepfake-audio")
    settled = asked.changed(by=parse_by([by]), threshold=threshold, gap="none", drift=Drift(clean, pair_by))
    if stream:
        from hitmiss.outofcore.stream import evaluate_streamed

        results = evaluate_streamed(
            scores, key=key, reading=reading.over(rules.read) if rules else reading, design=settled
        ).results
    else:
        results = drift_of(read_trials(scores, key, rules, reading), settled)
    if output:
        results.save(output)
    if json:
        common.out_with_verdict(results.to_dict(), conclude(results))
        return
    terminal.write_tables([drift_table(results)])
    terminal.write_verdict(conclude(results), results.warnings, brief=common.is_quiet())
    common.sampled(results)
    common.out(f"\n{results.signature}")
