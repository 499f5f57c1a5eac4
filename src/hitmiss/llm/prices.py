"""What answers cost: from prices that the user gives, or as the provider reports it; otherwise undefined, never 0."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError

PER: Final = 1_000_000
KINDS: Final = ("input", "output", "cached_input")


@dataclass(frozen=True)
class Prices:
    """For each model the price of a million tokens: input, output, and input that the provider had cached."""

    by_model: Mapping[str, Mapping[str, float]]

    def cost(self, model: str, tokens: Mapping[str, int] | None) -> tuple[float | None, str]:
        """Return the cost of one answer, or None and the reason.

        >>> prices = Prices({"m": {"input": 2.0, "output": 8.0}})
        >>> prices.cost("m", {"input": 1000, "output": 500})
        (0.006, '')
        >>> prices.cost("other", {"input": 1, "output": 1})
        (None, 'no price was given for other')
        """
        own = self.by_model.get(model) or self.by_model.get(model.rpartition("/")[2])
        if own is None:
            return None, f"no price was given for {model}" if self.by_model else "no prices were given"
        if not tokens or "input" not in tokens or "output" not in tokens:
            return None, "the provider reported no tokens"
        cached = tokens.get("cached_input", 0)
        fresh = tokens["input"] - cached
        total = fresh * own["input"] + cached * own.get("cached_input", own["input"]) + tokens["output"] * own["output"]
        return total / PER, ""


def read_prices(path: str | Path | None) -> Prices:
    """Read prices from a TOML or JSON file: `[gpt-5.1]`, `input = 1.25`, `output = 10`, per million tokens."""
    if path is None:
        return Prices({})
    path = Path(path)
    data = path.read_bytes()
    try:
        found: object = json.loads(data) if path.suffix == ".json" else tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DataError.of(
            "not-a-file", file=path.name, what="JSON" if path.suffix == ".json" else "TOML", error=error
        ) from None
    if not isinstance(found, dict) or not all(isinstance(own, dict) for own in found.values()):
        raise DataError.of("bad-prices", path_name=path.name)
    return Prices({model: _checked(path.name, model, own) for model, own in found.items()})


def _checked(name: str, model: str, own: Mapping[str, object]) -> dict[str, float]:
    for kind in ("input", "output"):
        if kind not in own:
            raise DataError.of("bad-prices/missing", name=name, model=model, kind=kind)
    prices: dict[str, float] = {}
    for kind, value in own.items():
        if kind not in KINDS or isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise DataError.of("bad-prices/value", name=name, model=model, kind=kind, value=value, KINDS=tuple(KINDS))
        prices[kind] = float(value)
    return prices
