"""From what a caller states to a design: defaults of a verb < protocol < settings file < command or keywords."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hitmiss.core.design import Design, Taken
from hitmiss.core.protocol import Protocol
from hitmiss.core.settings import ASKED, Settings, value_text
from hitmiss.core.spec import Layer, make
from hitmiss.evaluation.protocol import find_protocol, locked, requirement_texts


def make_design(
    said: Mapping[str, object],
    settings: Settings | None = None,
    *,
    allowed: Collection[str] = ASKED,
    defaults: Mapping[str, object] | None = None,
) -> tuple[Design, Taken | None]:
    """Make a design; also return what was taken from the settings file.

    Parameters
    ----------
    said
        The fields of `Design` that the caller states; a protocol by name, file or object.
    settings
        The settings file that applies, if any.
    allowed
        The fields that the settings may state.
    defaults
        What holds where neither the caller, the settings nor the protocol state anything.

    Examples
    --------
    >>> design, _ = make_design({"protocol": "asvspoof5", "metrics": "EER"}, defaults={"bootstrap": 1000})
    >>> design.protocol.name, design.metrics, design.bootstrap
    ('asvspoof5', ('eer',), 1000)
    """
    given = {name: value for name, value in said.items() if name != "protocol"}
    file = Layer("", {}) if settings is None else settings.layer("ask", [n for n in allowed if n not in given])
    rules = find_protocol(said["protocol"]) if said.get("protocol") is not None else None  # type: ignore[arg-type]
    if rules is not None and given.get("bootstrap", file.values.get("bootstrap")) == 0:
        rules = rules.without_bootstrap
    if "require" in given:
        given["criteria"] = locked(given["require"])  # type: ignore[arg-type]
        given["require"] = requirement_texts(given["require"])  # type: ignore[arg-type]
    known = {*(defaults or {}), *file.values, *given}
    base = Layer("protocol", _defaults(rules, "matrix" in known)) if rules is not None else Layer("", {})
    design, _ = make(Design, Layer("default", defaults or {}), base, file, Layer("caller", given))
    taken = {name: value_text(value) for name, value in file.values.items()}
    return design, None if settings is None else Taken(settings.name, taken)


def _defaults(protocol: Protocol, is_matrix: bool) -> dict[str, object]:
    """Return what a protocol states about a design; its groupings do not stand beside a matrix."""
    fields = {"by": () if is_matrix else protocol.by, "unit": protocol.unit, "bootstrap": protocol.bootstrap}
    own = {name: value for name, value in fields.items() if value}
    return {"protocol": protocol, **own, **({} if protocol.threshold is None else {"threshold": protocol.threshold})}
