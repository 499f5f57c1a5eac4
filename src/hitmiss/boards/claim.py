"""A board as a claim: every system measured and ranked again, and compared both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hitmiss.boards.board import make_board
from hitmiss.boards.plan import plan_of
from hitmiss.claims.differences import document_differences, protocol_differences
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.read_spec import ReadSpec


def board_differences(
    data: Mapping[str, object], scores: Sequence[str], key: str | None, reading: ReadSpec
) -> tuple[int, list[str], list[str]]:
    """Make the board of a claim again; return the number of systems, the differences, and what was not recomputed.

    Parameters
    ----------
    data
        The JSON form of the board.
    scores
        The folder of the submissions, or the `board.toml`.
    key
        The folder of the keys, or the key of a single data set.
    reading
        Read options that the claim does not state.
    """
    if data.get("design") is None or data.get("reading") is None:
        raise DataError.of("claim-without-design", file_name="the board")
    if len(scores) != 1:
        raise UsageError.of("other-runs", n_sides=1, n_words=len(scores))
    design, read = Design.from_plain(data["design"]), ReadSpec.from_plain(data["reading"])
    made = make_board(plan_of(scores[0], key), design, reading.over(read), rank_by=str(data.get("rank_by")))
    found = json.loads(json.dumps(made.to_dict()))
    unlike, left = protocol_differences(design.protocol)
    if data.get("hitmiss") != found["hitmiss"]:
        left.append(f"the version (claimed hitmiss {data.get('hitmiss')}, this is hitmiss {found['hitmiss']})")
    return len(made.rows), [*document_differences(data, found), *unlike], left
