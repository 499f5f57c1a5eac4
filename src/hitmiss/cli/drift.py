"""`hitmiss drift`: FAR and FRR of coded or manipulated clips at the threshold that was fixed on the clean ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, KEY, RESULTS, RULES
from hitmiss.core.design import Design, Drift, parse_by
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, opt


def drift(
    scores: Annotated[str, arg("A run folder of `hitmiss detect`, or a score file with labels.")],
    by: Annotated[
        str, opt("Column(s) of the conditions: `manipulation`, `codec,codec_q`.", MEASURING, common=True)
    ] = "manipulation",
    key: Annotated[str | None, KEY] = None,
    protocol: Annotated[str | None, RULES] = None,
    *,
    asked: Annotated[
        Design, fields(without=("protocol", "metrics", "by", "matrix", "interval", "stratify", "gap"), bootstrap=1000)
    ],
    reading: ReadSpec,
    clean: Annotated[str | None, opt("The value of untouched clips (default: clean, NONE or -).", common=True)] = None,
    pair_by: Annotated[str | None, opt("Column that links a clip's copies (default: source).")] = None,
    threshold: Annotated[
        float | None, opt("A threshold chosen elsewhere; score > t is accepted.", MEASURING, common=True)
    ] = None,
    stream: Annotated[bool, opt("One condition at a time: the run folder need not fit into memory.", READING)] = False,
    output: Annotated[str | None, RESULTS] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Show FAR and FRR per condition at one fixed threshold, their drift from clean clips, and the score shift.

    $ hitmiss drift run --by codec
    """
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
        printing.out_with_verdict(results.to_dict(), conclude(results))
        return
    terminal.write_tables([drift_table(results)])
    terminal.write_verdict(conclude(results), results.warnings, brief=printing.is_quiet())
    printing.sampled(results)
    printing.out(f"\n{results.signature}")
