"""The method of an interval as data. Files keep it as a text until the next version of their schema; only this reads it."""

from __future__ import annotations

from dataclasses import dataclass

USUAL_LEVEL = 0.95


@dataclass(frozen=True)
class Method:
    """How an interval was computed: its kind, what was drawn, how often, and its level.

    >>> Method.read("bootstrap 1000,unit=speaker from all,auto,0.9,seed=0")
    Method(kind='bootstrap', draws=1000, drawn='unit=speaker from all', level=0.9)
    >>> Method.read("wilson"), Method.read("bootstrap over source").drawn
    (Method(kind='wilson', draws=None, drawn='', level=0.95), 'over source')
    """

    kind: str = ""
    draws: int | None = None
    drawn: str = ""
    level: float = USUAL_LEVEL

    @property
    def is_drawn(self) -> bool:
        """Whether it comes from replicates."""
        return self.kind == "bootstrap"

    @classmethod
    def read(cls, text: str | None) -> Method:
        """Return the method that a text states; blank without one."""
        if not text:
            return cls()
        kind, _, rest = text.partition(" ")
        kind, parts = kind.rstrip(","), [part.strip() for part in text.replace(" ", ",").split(",")]
        level = next((number for part in parts if (number := _share(part)) is not None), USUAL_LEVEL)
        if kind != "bootstrap":
            return cls(text if "," not in text else kind, level=level)
        count, comma, after = rest.partition(",")
        if not comma or not count.isdecimal():
            return cls(kind, drawn=rest, level=level)
        return cls(kind, int(count), after.partition(",")[0], level)


def _share(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0.5 <= found < 1.0 else None
