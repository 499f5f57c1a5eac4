"""`hitmiss list`: list the names that can be used on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON

if TYPE_CHECKING:
    from hitmiss.core import registry


Kind = Literal["metrics", "protocols", "readers", "attacks", "detectors", "codecs"]


def list_(
    kind: Annotated[Kind, arg("What to list.")],
    json: Annotated[bool, JSON] = False,
) -> None:
    """List metrics, protocols, readers, attack families, kinds of detectors or codecs, with one line about each.

    $ hitmiss list metrics
    """
    made = {"metrics": metric_rows, "attacks": attack_rows, "codecs": codec_rows}
    rows = made[kind]() if kind in made else other_rows(KINDS[kind])
    if json:
        printing.out_json({"schema": 1, kind: rows})
    elif not rows:
        printing.note(f"there are no {kind}")
    else:
        hidden = ("settings", "name" if kind == "attacks" else "")  # `show` prints all of them; a line is too short
        shown = [name for name in rows[0] if name not in hidden]
        printing.out_table(shown, [[_cell(row[name]) for name in shown] for row in rows])


KINDS: Final[Mapping[Kind, registry.Kind]] = {
    "protocols": "protocol",
    "readers": "reader",
    "detectors": "detector",
}


def metric_rows() -> list[dict[str, object]]:
    """Return one row per metric: its name, the columns it needs, which way is better, its settings, its first line."""
    from hitmiss.core.registry import all_metrics

    return [
        {
            "name": metric.name,
            "columns": list(metric.columns),
            "best": metric.best,
            "settings": printing.plain(metric.defaults),
            "about": first_line(metric.function),
        }
        for metric in all_metrics().values()
    ]


def other_rows(kind: registry.Kind) -> list[dict[str, object]]:
    """Return one row per protocol, reader or kind of detector: its name and its first line."""
    from hitmiss.core.registry import all_of

    return [{"name": name, "about": first_line(value)} for name, value in all_of(kind).items()]


def attack_rows() -> list[dict[str, object]]:
    """Return one row per family of perturbations and attacks: its call, what it changes, its first line."""
    from hitmiss.attacks.catalogue import catalogue

    return [
        {"name": f.name, "call": f.call, "for": f.medium, "settings": printing.plain(f.settings), "about": f.about}
        for f in catalogue()
    ]


def codec_rows() -> list[dict[str, object]]:
    """Return one row per codec: its name, its label, its sample rate and its bit rates."""
    from hitmiss.attacks.codecs import all_codecs

    return [
        {"name": c.name, "label": c.label, "sample_rate": c.sample_rate, "kbps": " ".join(f"{k:g}" for k in c.kbps)}
        for c in all_codecs().values()
    ]


def first_line(value: object) -> str:
    """Return one line about a thing: its `title`, or else the first line of its docstring."""
    value = value.func if isinstance(value, partial) else value
    text = getattr(value, "title", None) or getattr(value, "__doc__", None) or ""
    return str(text).strip().partition("\n")[0]


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={setting}" for key, setting in value.items()) or "-"
    return ", ".join(value) if isinstance(value, list) else str(value)
