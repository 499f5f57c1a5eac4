"""GateSpec: the rules of a gate, as options of a command or as `gate.toml`, which is kept and signed with the project.

baseline = "main.csv"                       # relative to the file
owners = ["@trust-and-safety"]              # of every rule that names none
max_regression = ["roc_auc[language=*]=0.01"]
require = ["recall[language=*] >= 0.6"]

[[rules]]                                   # a rule of its own: one of fail_if, require, max_regression
fail_if = "worst fnr > 0.5"
owners = ["@turkish-desk"]
why = "agreed with legal, June"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Literal

from hitmiss.core import artifacts
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.spec import CERTAINTY, MEASURING, Spec, as_names, keyword, opt

NAME: Final = "gate.toml"
"""The file that is taken from the working folder where no rule is given."""
KINDS: Final = ("fail_if", "require", "max_regression")
DecideBy = Literal["auto", "point", "bound", "shown"]


@dataclass(frozen=True)
class GateRule:
    """One rule as its text, what kind it is, and who answers for it."""

    kind: str
    text: str
    owners: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class GateSpec(Spec):
    """What a run must keep, and the run that it is compared with.

    Parameters
    ----------
    fail_if
        Rules on what must not be.
    baseline, max_regression
        The run to compare with, and how much worse a number may be than there.
    regression_by
        What decides about a difference. `auto`: `shown` where the answers of both runs are there, `point` from results.
    unpaired
        The two runs are samples of one population with other items.
    force
        A baseline that is not comparable is accepted.
    require, owners, rules
        Of a file: what must be shown, who answers for the rules, and rules with owners of their own.

    >>> GateSpec(fail_if=("eer > 0.1",)).all_rules
    (GateRule(kind='fail_if', text='eer > 0.1', owners=(), why=''),)
    """

    _form, _option = "gate", "key of a gate"
    fail_if: Annotated[
        tuple[str, ...],
        opt(
            "A rule, as 'eer > 0.05', 'eer[codec=C05] > 0.1', 'eer.high > 0.1', 'worst eer > 0.2'; may be repeated.",
            MEASURING, read=as_names, common=True,
        ),
    ] = ()  # fmt: skip
    baseline: Annotated[str | None, opt("The run to compare with, given in the same way.", MEASURING, common=True)] = (
        None
    )
    max_regression: Annotated[
        tuple[str, ...],
        opt(
            "How much worse than the baseline, as eer=0.005; may be repeated.", MEASURING, read=as_names, common=True
        ),
    ] = ()  # fmt: skip
    regression_by: Annotated[
        DecideBy,
        opt(
            "point, bound (fails if the interval does not rule it out) or shown (fails only if the interval shows it); auto: "
            "shown if both runs are given as scores, point from results.",
            MEASURING,
        ),
    ] = "auto"
    unpaired: Annotated[
        bool, opt("The baseline is another sample of the same population (last month), not the same items.", CERTAINTY)
    ] = False
    force: Annotated[bool, opt("Accept a baseline that is not comparable, with a warning.", CERTAINTY)] = False
    require: Annotated[tuple[str, ...], keyword("What must be shown.", as_names)] = ()
    owners: Annotated[tuple[str, ...], keyword("Who answers for the rules.", as_names)] = ()
    rules: Annotated[tuple[GateRule, ...], keyword("Rules with owners of their own.")] = ()
    path: Annotated[str, keyword("The file that states this.")] = field(default="", compare=False)

    def __post_init__(self) -> None:
        self._read_fields()

    @property
    def all_rules(self) -> tuple[GateRule, ...]:
        """Every rule with its owners."""
        listed = [GateRule(kind, text, self.owners) for kind in KINDS for text in getattr(self, kind)]
        own = [rule if rule.owners else replace(rule, owners=self.owners) for rule in self.rules]
        return (*listed, *own)

    def over(self, file: GateSpec) -> GateSpec:
        """Return what a command states over what a file states: rules are added, everything else is replaced."""
        rules = tuple(GateRule(kind, text) for kind in KINDS for text in getattr(self, kind))
        return replace(
            file,
            baseline=self.baseline or file.baseline,
            regression_by=file.regression_by if self.regression_by == "auto" else self.regression_by,
            unpaired=self.unpaired or file.unpaired,
            force=self.force or file.force,
            rules=(*file.rules, *rules),
        )


def load_gate(path: str | Path) -> GateSpec:
    """Read a gate from its file; an unknown key or an unfit value is refused with its place."""
    file = Path(path)
    try:
        artifacts.note_input(file)
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError.of("missing-gate-file", path=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError.of("bad-gate-file", file=file.name, why=str(error)) from None
    rows = data.pop("rules", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError.of("bad-gate-file/rules", file=file.name)
    try:
        known = {name: GateSpec.checked(name, value) for name, value in data.items() if name != "path"}
        rules = tuple(_rule(row, file.name, place) for place, row in enumerate(rows, 1))
    except UsageError as error:
        raise UsageError.of("bad-gate-file", file=file.name, why=error.found) from None
    made = replace(GateSpec(), **known, rules=rules, path=str(path))  # type: ignore[arg-type]
    return made if made.baseline is None else replace(made, baseline=_beside(file, made.baseline))


def _beside(file: Path, run: str) -> str:
    """Return a run that is named relative to a file; `FOLDER:TAG` and `FILE[column=value]` stay what they are."""
    return str(file.parent / run) if file.parent != Path() else run


def _rule(row: Mapping[str, object], file: str, place: int) -> GateRule:
    for name in row:
        if name not in (*KINDS, "owners", "why"):
            raise UnknownName(f"key of rule {place}", name, (*KINDS, "owners", "why"))
    kinds = [name for name in KINDS if name in row]
    why = row.get("why", "")
    if len(kinds) != 1 or not isinstance(row[kinds[0]], str) or not isinstance(why, str):
        raise UsageError.of("bad-gate-file/rule", file=file, place=place)
    owners = GateSpec.checked("owners", row.get("owners", ()))
    assert isinstance(owners, tuple)
    return GateRule(kinds[0], str(row[kinds[0]]), owners, why)
