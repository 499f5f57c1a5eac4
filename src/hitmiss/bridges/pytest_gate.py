"""A plug-in of pytest: the fixture `hitmiss_gate` fails a test that a gate stops, with its table as the message.

def test_no_regression(hitmiss_gate):
    hitmiss_gate("new.csv", baseline="main.csv", max_regression="roc_auc[language=*]=0", protocol="toxicity")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.evaluation.gate import GateOutcome


@pytest.fixture
def hitmiss_gate() -> Callable[..., GateOutcome]:
    """Return a function that takes a run and rules as `hitmiss gate` does, and fails the test if a rule does."""
    return _gate


def _gate(
    run: Results | Trials | str | Path,
    *,
    baseline: Results | Trials | str | Path | None = None,
    rules: str | Path | None = None,
    key: str | None = None,
    protocol: str | None = None,
    threshold: float | None = None,
    bootstrap: int = 0,
    unit: tuple[str, ...] = (),
    **options: Any,
) -> GateOutcome:
    """Judge a run; other options are those of the gate (`max_regression`, `fail_if`, `unpaired`) and of reading."""
    from hitmiss.claims.open import open_source
    from hitmiss.core.design import Design
    from hitmiss.core.gate_spec import GateSpec, load_gate
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.core.spec import options_of
    from hitmiss.core.trials import Trials
    from hitmiss.evaluation.gate import judge_gate
    from hitmiss.evaluation.protocol import decided, find_protocol
    from hitmiss.reports.gate_report import comment

    own = {name: options.pop(name) for name in options_of(GateSpec) if name in options}
    spec, reading = GateSpec().changed(**own), ReadSpec().changed(**options)
    if rules is not None:
        spec = spec.over(load_gate(rules))
    found = None if protocol is None else find_protocol(protocol)
    design = replace(Design(protocol=found, threshold=threshold), bootstrap=bootstrap, unit=unit)

    def opened(one: Results | Trials | str | Path) -> Results | Trials:
        made = open_source(str(one), key, found, reading) if isinstance(one, str | Path) else one
        return decided(made, design) if isinstance(made, Trials) else made

    before = baseline if baseline is not None else spec.baseline
    outcome = judge_gate(opened(run), None if before is None else opened(before), spec, design)
    if not outcome.passed:
        pytest.fail(comment(outcome).rpartition("<!--")[0].rstrip(), pytrace=False)
    return outcome
