"""`hitmiss validate`: what a file is, and everything that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitmiss.cli import printing

if TYPE_CHECKING:
    from hitmiss.io import Examination, ReadOptions

FILES = "Score file(s), shards of one run. `-` is stdin; globs and .gz are understood."
SHOWN_VALUES = 8


def validate(
    scores: Annotated[list[str], typer.Argument(help=FILES)],
    key: Annotated[str | None, typer.Option(help="Key or protocol file with the labels.")] = None,
    protocol: Annotated[str | None, typer.Option("--protocol", "-p", help="Read by the rules of a protocol.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Our name = the file's column, `item=utt`.")] = None,
    score_column: Annotated[list[str] | None, typer.Option(help="A score column; repeat it for several.")] = None,
    score_kind: Annotated[str | None, typer.Option(help="llr, logit, probability or raw.")] = None,
    positive: Annotated[str | None, typer.Option(help="Name of the positive class.")] = None,
    negative: Annotated[str | None, typer.Option(help="Name of the other class.")] = None,
    positive_value: Annotated[str | None, typer.Option(help="What the label column says for positive, as 1.")] = None,
    layout: Annotated[str | None, typer.Option(help="A layout of `hitmiss list readers`, without recognition.")] = None,
    separator: Annotated[str | None, typer.Option(help="The character between fields.")] = None,
    encoding: Annotated[str | None, typer.Option(help="The encoding of the text, as cp1252.")] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal sign, `.` or `,`.")] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Check files without scoring them: what was recognised, and every fault with file, row and value (exit code 3)."""
    from hitmiss.io import examine

    options = _options(
        protocol,
        columns=printing.pairs("--column", column or []),
        score_columns=tuple(score_column or ()),
        score_kind=score_kind,
        positive=positive,
        negative=negative,
        positive_value=positive_value,
        layout=layout,
        separator=separator,
        encoding=encoding,
        decimal=decimal,
    )
    seen = examine(scores, key, options)
    if json:
        printing.out_json({"schema": 1, "clean": seen.is_clean, **printing.plain(_report(seen))})
    else:
        _print(seen)
    if not seen.is_clean:
        raise typer.Exit(3)


def _options(protocol: str | None, **declared: Any) -> ReadOptions:
    from hitmiss.io import ReadOptions

    options = ReadOptions()
    if protocol is not None:
        from hitmiss.protocol import find_protocol

        options = find_protocol(protocol).options
    return options.changed(**{name: value for name, value in declared.items() if value is not None})


def _report(seen: Examination) -> dict[str, Any]:
    return {"summary": seen.summary, "faults": seen.faults}


def _print(seen: Examination) -> None:
    summary = seen.summary
    for file in summary["files"]:
        columns = ", ".join(f"{ours}={theirs}" for ours, theirs in file["columns"].items())
        printing.out(f"{file['name']}: {file['rows']:,} rows, {file['layout']}, {file['encoding']} ({columns})")
    if seen.trials is not None:
        classes = ", ".join(f"{n:,} {name}" for name, n in summary["classes"].items())
        printing.out(f"{summary['trials']:,} trials: {classes}; positive = {summary['positive']}")
    for role in ("runs", "slices"):
        for name, found in summary.get(role, {}).items():
            printing.out(f"{role[:-1]} {name}: {_values(found)}")
    for note in summary["notes"]:
        printing.out(f"note: {note}")
    for fault in seen.faults:
        printing.out(f"{fault.kind}: {fault}")
    printing.out(f"{len(seen.faults):,} fault{'' if len(seen.faults) == 1 else 's'}" if seen.faults else "no faults")


def _values(found: dict[str, Any]) -> str:
    shown = list(found["commonest"].items())[:SHOWN_VALUES]
    dots = f", … {found['values']:,} in all" if found["values"] > len(shown) else ""
    return ", ".join(f"{value or '(empty)'} {n:,}" for value, n in shown) + dots
