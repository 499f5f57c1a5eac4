"""What was tested, the warnings, the signatures, and the files with their hashes."""

from __future__ import annotations

from typing import Final

from hitmiss.reports.context import Context
from hitmiss.reports.evaluations import Evaluation, signature_part
from hitmiss.reports.section import Block, CodeBlock, FoldedBlock, PointsBlock, Section, TableBlock
from hitmiss.reports.table import Table, TableCell

PLACE: Final = 90

MOST_SIGNATURES: Final = 3
"""Number of signatures that are shown at once; the others are folded."""


def provenance(evaluation: Evaluation, context: Context) -> Section:
    """Return where the numbers come from."""
    results = evaluation.results
    signatures = (*results.signature.splitlines(), *filter(None, (context.compared.signature,)))
    tested = _tested(evaluation)
    blocks: list[Block] = [TableBlock(tested, tall=True)] if tested.rows else []
    return origin(tuple(blocks), results.warnings, signatures, _files(evaluation))


def origin(first: tuple[Block, ...], warnings: tuple[str, ...], signatures: tuple[str, ...], files: Table) -> Section:
    """Return the section of warnings, signatures and files, after what was tested."""
    blocks: list[Block] = [*first, *([PointsBlock(warnings)] if warnings else [])]
    blocks += [CodeBlock(signatures[:MOST_SIGNATURES])] if signatures else []
    if more := signatures[MOST_SIGNATURES:]:
        blocks.append(FoldedBlock(f"{len(more)} more signatures", (CodeBlock(more),)))
    if files.rows:
        blocks.append(FoldedBlock("Runs, settings and files", (TableBlock(files, captioned=False),)))
    return Section("origin", "Provenance", tuple(blocks))


def _tested(evaluation: Evaluation) -> Table:
    """Describe what was tested, from the manifests of the runs."""
    facts = [(s.name, what, value) for s in evaluation.sources for what, value in s.dossier]
    rows = tuple(tuple(map(TableCell, row)) for row in facts)
    return Table("What was tested", ("run", "what", "value"), rows, 3)


def _files(evaluation: Evaluation) -> Table:
    """Return per run its data, its settings, and its files with hashes; never a folder."""
    rows = []
    for member in evaluation.members:
        signature = member.source.results.signature
        said = [(n, signature_part(signature, n)) for n in ("hitmiss", "protocol", "kind", "boot", "data", "out")]
        rows += [(TableCell(member.name), TableCell(name), TableCell(value)) for name, value in said if value]
        sources = member.source.trials.header.sources if member.source.trials is not None else ()
        rows += [(TableCell(member.name), TableCell("file"), TableCell(s.name, f"SHA-256 {s.sha256}")) for s in sources]
    return Table("provenance", ("run", "what", "value"), tuple(rows), 3)
