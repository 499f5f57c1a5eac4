"""The heading above results: what was scored, by which protocol, with which classes and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hitmiss.core.columns import user_name

if TYPE_CHECKING:
    from hitmiss.core.protocol import Protocol
    from hitmiss.core.trials import Trials

__all__ = ["heading"]


def heading(trials: Trials, protocol: Protocol | None, natural: Sequence[str] = ()) -> str:
    """Return the lines above a table of results; `natural`: the units that were drawn because the protocol names them."""
    head, there = trials.header, trials.completeness
    n_runs = trials.frame.select(head.runs).n_unique() if head.runs else 1
    named = ", ".join(map(user_name, head.runs))
    is_even = not there.short and head.unnamed is None
    n, positives = (n // n_runs if is_even else n for n in (len(trials), trials.n_positive))
    size = f"{n:,} trials" if is_even or head.unnamed else f"{there.questions:,} items"
    size += f" × {n_runs} runs ({named})" if is_even or not head.unnamed else f" of {n_runs} runs ({named})"
    size = size if n_runs > 1 else f"{n:,} trials"
    parts = [
        protocol.title if protocol else "",
        f"{size}: {positives:,} {head.positive}, {n - positives:,} {head.negative}" if not head.graded_by else size,
        f"{head.score_kind} scores, higher = {head.negative if head.scale.is_reversed else head.positive}"
        if not head.graded_by
        else f"answers of {head.provenance['tool']}, graded by {head.graded_by}",
        head.settled,
        f"decisions: {head.decided}" if head.decided else "",
        "" if there.is_full else f"covers {there} trials",
        f"intervals over {' × '.join(natural)}, the natural units of this protocol (--unit none: single trials)"
        if natural
        else "",
    ]
    return "\n".join(filter(None, parts))
