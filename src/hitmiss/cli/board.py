"""`hitmiss board`: systems × data sets, ranked, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.boards.board import Board
    from hitmiss.boards.plan import BoardPlan

PLACES = (
    "Folder of submissions (SYSTEM/DATASET.tsv, DATASET/SYSTEM.tsv, or SYSTEM.tsv for one data set), or a board.toml."
)


def board(
    submissions: Annotated[str, arg(PLACES, "SUBMISSIONS|board.toml")],
    keys: Annotated[
        str | None, opt("Folder with one key per data set, or the key of a single one.", READING, common=True)
    ] = None,
    *,
    asked: Annotated[Design, fields(without=("matrix", "gap", "stratify", "threshold", "require"), bootstrap=1000)],
    reading: ReadSpec,
    rank_by: Annotated[
        str | None,
        opt("average (over data sets), pooled (under one threshold) or a data set.", MEASURING, common=True),
    ] = None,
    cache: Annotated[
        str | None, opt("Folder that keeps what was measured: one more system then reads its own files.", CERTAINTY)
    ] = None,
    output: Annotated[
        str | None, opt("Write the board (JSON) here too.", WRITING, "--output", "-o", common=True)
    ] = None,
    site: Annotated[str | None, opt("Write a static site into this folder.", WRITING, common=True)] = None,
    table: Annotated[
        list[str] | None, opt("Write the tables to a .csv, .xlsx, .tex or .md file; may be repeated.", WRITING)
    ] = None,
    codabench: Annotated[
        str | None, opt("Write a scoring program for Codabench (ZIP) that runs without a network.", WRITING)
    ] = None,
    hub: Annotated[
        str | None, opt("Write .eval_results files for Hugging Face into this folder.", WRITING, metavar="FOLDER")
    ] = None,
    arena: Annotated[
        str | None,
        opt("Write result.yaml files of the Speech Anti-Spoofing Arena into this folder.", WRITING, metavar="FOLDER"),
    ] = None,
    arena_url: Annotated[str, opt("Address of the arena, for --arena.", WRITING)] = "",
    scores_url: Annotated[
        str, opt("Address of the score files, with {slug} and {dataset}, for --arena.", WRITING)
    ] = "",
    json: Annotated[bool, JSON] = False,
) -> None:
    """Rank systems over one or several data sets, each number with its interval; bad submissions are listed and skipped.

    $ hitmiss board submissions --keys keys -m eer --site public
    """
    from hitmiss.boards.board import make_board

    plan = _plan(submissions, keys)
    design = asked if plan.protocol is None or asked.protocol is not None else asked.changed(protocol=_protocol(plan))
    found = make_board(plan, design, reading, rank_by=rank_by, cache=cache)
    if output:
        from hitmiss.core import artifacts

        artifacts.write(output, found.to_json() + "\n")
    _write(found, site, table or [])
    _publish(found, hub, arena, arena_url, scores_url)
    if codabench:
        from hitmiss.reports.codabench import write_bundle

        size = write_bundle(codabench, design, reading)
        printing.note(f"wrote {codabench}: {size / 1e6:.1f} MB; upload the keys as the reference data")
    if json:
        printing.out_document(found.to_json())
        return
    from hitmiss.reports.board_tables import board_tables
    from hitmiss.reports.terminal import write_tables

    n, sets = len(found.rows), len(found.datasets)
    printing.out(found.title or f"{n} systems, {sets} data set{'s' * (sets > 1)}")
    write_tables(board_tables(found))


def _plan(submissions: str, keys: str | None) -> BoardPlan:
    from hitmiss.boards.plan import find_plan, read_plan
    from hitmiss.core.errors import UsageError

    if Path(submissions).suffix == ".toml":
        if keys is not None:
            raise UsageError.of("keys-twice", submissions=submissions)
        return read_plan(submissions)
    if keys is None:
        raise UsageError.of("no-key/say-where")
    return find_plan(submissions, keys)


def _protocol(plan: BoardPlan) -> object:
    from hitmiss.evaluation.protocol import find_protocol

    return find_protocol(plan.protocol or "")


def _write(found: Board, site: str | None, tables: list[str]) -> None:
    if site:
        from hitmiss.reports.board_site import write_site

        size = write_site(found, site)
        printing.note(f"wrote {site}: {len(found.rows) + 1} pages, {size / 1e6:.2f} MB")
    for path in tables:
        from hitmiss.core import artifacts
        from hitmiss.core.errors import UnknownName
        from hitmiss.reports.board_tables import board_tables
        from hitmiss.reports.exports import export_tables

        ending = {".csv": "csv", ".xlsx": "xlsx", ".tex": "latex", ".md": "markdown"}
        if (suffix := Path(path).suffix.lower()) not in ending:
            raise UnknownName("ending of a table", suffix or path, ending)
        text = export_tables(board_tables(found), ending[suffix])
        artifacts.write(path, text)
        printing.note(f"wrote {path}")


def _publish(found: Board, hub: str | None, arena: str | None, arena_url: str, scores_url: str) -> None:
    from hitmiss.core.errors import UsageError

    if hub:
        from hitmiss.boards.exchange import write_hub

        printing.note(f"wrote {len(write_hub(found, hub))} files below {hub}")
    if arena:
        from hitmiss.boards.exchange import write_arena

        if not arena_url or not scores_url:
            raise UsageError.of("no-address")
        written = write_arena(found, arena, arena_url=arena_url, scores_url=scores_url)
        printing.note(f"wrote {len(written)} files below {arena}")
