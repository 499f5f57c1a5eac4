"""Tables and verdicts as text that fits its output: never wider than the terminal; in a pipe, one line per row.

No number is ever cut, and no row loses the labels that identify it. A table that is too wide is tried in this order:
intervals below their numbers; transposed, if it has few rows; in parts below each other, each with the labels of the
rows; and if not even one column fits beside the labels, one block per row. Texts wrap at words.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from hitmiss.core import progress
from hitmiss.core.text import encodable, escape_invisible, wrap

if TYPE_CHECKING:
    from hitmiss.core.finding import Finding
    from hitmiss.core.verdict import Check, Verdict
from hitmiss.reports.table import Table, TableCell

GAP: Final = 2
"""Spaces between columns."""
LEAST_TEXT: Final = 14
"""Minimum width of a wrapped column of text, in characters."""
FEW_ROWS: Final = 4
"""Maximum number of rows of a table that may be transposed."""


def write_tables(tables: Sequence[Table], stream: TextIO | None = None) -> None:
    """Write tables to a stream in the form that suits it."""
    progress.clear()
    out = stream or sys.stdout
    terminal = out.isatty() and os.environ.get("TERM") != "dumb"
    width = width_of(out) if terminal else 0
    styled = terminal and not os.environ.get("NO_COLOR")
    for table in tables:
        drawn = fitted(table, width) if width else [TextRow(line) for line in lines(table)]
        title = [
            TextRow(line, "bold")
            for line in (wrap(escape_invisible(table.title), width) if width else [escape_invisible(table.title)])
        ]
        note = escape_invisible(table.note)
        below = [TextRow(line) for line in (wrap(note, width) if width else [note])] if note else []
        text = "\n".join(row.drawn(styled) for row in [TextRow(""), *title, *drawn, *below])
        out.write(encodable(text, out.encoding) + "\n")


LINES: Final = 40
"""Lines that a command prints without `--full`, where its tables allow."""
PASSED: Final = "✓"


def write_verdict(
    found: Verdict,
    warnings: Iterable[str] = (),
    stream: TextIO | None = None,
    *,
    brief: bool = False,
    room: int | None = None,
) -> None:
    """Write the conclusions, question by question, and the warnings that no answer repeats.

    `brief`: only warnings. With `room`, as many answers as fit into so many lines, and of the checks those that failed;
    the others are counted.
    """
    progress.clear()
    out = stream or sys.stdout
    width = (width_of(out) if out.isatty() else 0) or 100
    shown = [
        _verdict_lines(found, list(warnings), width, brief, most) for most in ((None,) if room is None else (3, 2, 1))
    ]
    said = next((lines_ for lines_ in shown if room is None or len(lines_) <= room), shown[-1])
    if said:
        out.write(encodable("\n".join(said), out.encoding) + "\n")


def room_under(tables: Sequence[Table], others: int) -> int:
    """Return how many lines are left for a verdict under tables and other lines, and above a signature."""
    return LINES - sum(len(table.rows) + 3 for table in tables) - others - 2


def _verdict_lines(found: Verdict, warnings: list[str], width: int, brief: bool, most: int | None) -> list[str]:
    """Return the lines of a verdict, with at most so many answers to a question."""
    said = [] if brief else ["", *_wrapped(found.headline, width)]
    for title, answers in () if brief else found.sections:
        kept = list(answers) if most is None else _shortened(answers, most)
        said += ["", title] if most is None or kept else []
        for line in kept:
            name = f"{line.name}: " if line.name else ""
            said += _wrapped(f"  {line.mark} {name}{line.text}", width, "    ")
        if len(kept) < len(answers):
            said.append(f"  … {_counted([a for a in answers if a not in kept])} (--full)")
    answered = set() if brief else {line.text for _, lines in found.sections for line in lines}
    left = [w for w in warnings if w not in answered]
    for place, warning in enumerate(left[:most]):
        said += [*([""] if most is None or not place else []), *wrap(f"! {escape_invisible(warning)}", width, "  ")]
    if most is not None and len(left) > most:
        said.append(f"! {len(left) - most} more (--full)")
    return said


def _shortened(answers: Sequence[Finding | Check], most: int) -> list[Finding | Check]:
    """Return the first answers; of checks, which have names, those that failed."""
    if any(a.name for a in answers):
        return [a for a in answers if a.mark not in (PASSED, "?")]
    return list(answers[:most])


def _counted(answers: Sequence[Finding | Check]) -> str:
    if not any(a.name for a in answers):
        return f"{len(answers)} more"
    passed = sum(a.mark == PASSED for a in answers)
    open_ = [a.name for a in answers if a.mark != PASSED]
    return f"{passed} checks passed" + (f"; not checked: {', '.join(open_)}" if open_ else "")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break a sentence into lines, never between a number and its unit."""
    return [line.replace("\u00a0", " ") for line in wrap(escape_invisible(text, keep="\u00a0"), width, indent)]


def width_of(out: TextIO) -> int:
    """Return the width of the terminal of a stream; the variable COLUMNS overrides it."""
    try:
        here = os.get_terminal_size(out.fileno()).columns
    except (OSError, ValueError, AttributeError):
        here = 0
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else here or shutil.get_terminal_size((80, 24)).columns


@dataclass(frozen=True)
class TextRow:
    """A line of text and its style."""

    text: str
    style: str = ""

    def drawn(self, styled: bool) -> str:
        """Return the line for a terminal."""
        text = self.text.rstrip()
        codes = {"bold": "\x1b[1m", "dim": "\x1b[2m"}
        return f"{codes[self.style]}{text}\x1b[0m" if styled and self.style and text else text


def lines(table: Table) -> list[str]:
    """Format a table as aligned lines of plain text, one per row.

    >>> lines(Table("t", ("codec", "eer ↓"), ((TableCell("C01"), TableCell("0.1", "[.09, .11]")), (TableCell("NONE"), TableCell("0.05")))))
    ['codec             eer ↓', 'C01     0.1  [.09, .11]', 'NONE   0.05']
    """
    values = [max((len(row[i].text) for row in table.rows), default=0) for i in range(len(table.header))]
    texts = [[c.text if i < table.labels else _one_line(c, values[i]) for i, c in enumerate(row)] for row in table.rows]
    full = [max(len(t) for t in (h, *(row[i] for row in texts))) for i, h in enumerate(table.header)]
    wide = [any(row[i].below for row in table.rows) for i in range(len(table.header))]

    def line(cells: list[str], is_header: bool = False) -> str:
        parts = []
        for i, cell in enumerate(cells):
            left = i < table.labels or (wide[i] and not is_header) or not table.header[i]
            parts.append(cell.ljust(full[i]) if left else cell.rjust(full[i]))
        return "  ".join(parts).rstrip()

    return [line(list(table.header), True), *(line(row) for row in texts)]


def _one_line(cell: TableCell, width: int) -> str:
    return f"{cell.text.rjust(width)}  {cell.below}" if cell.below else cell.text.rjust(width) if cell.text else ""


def fitted(table: Table, width: int) -> list[TextRow]:
    """Format a table as lines, none wider than `width`.

    >>> t = Table("t", ("codec", "eer ↓"), ((TableCell("C01"), TableCell("0.1", "[.09, .11]")), (TableCell("NONE"), TableCell("0.05"))))
    >>> [row.text for row in fitted(t, 20)]
    ['codec       eer ↓', '─────────────────', 'C01           0.1', '       [.09, .11]', 'NONE         0.05']
    """
    plain = lines(table)
    if max(map(len, plain)) <= width:
        return _ruled(plain, table)
    columns = [_Column.of(table, i) for i in range(len(table.header))]
    stacked = _stacked(table, columns, width)
    if stacked is not None:
        return stacked
    if len(table.rows) <= FEW_ROWS < len(table.header) - table.labels:
        turned = table.turned()
        if (found := _stacked(turned, [_Column.of(turned, i) for i in range(len(turned.header))], width)) is not None:
            return found
    return _in_parts(table, columns, width) or list(_blocks(table, width))


@dataclass(frozen=True)
class _Column:
    """A column: the width that it needs, and whether it is text that may be wrapped."""

    least: int
    full: int
    is_text: bool

    @classmethod
    def of(cls, table: Table, i: int) -> _Column:
        cells = [row[i] for row in table.rows]
        texts = [table.header[i], *(t for c in cells for t in (c.text, c.below) if t)]
        full = max(map(len, texts), default=0)
        is_text = i < table.labels or not table.header[i] or any(_is_words(c.text) for c in cells)
        return cls(min(full, LEAST_TEXT) if is_text else full, full, is_text)


def _is_words(text: str) -> bool:
    """Say whether a cell holds words, which may be wrapped, and not a number, which may not."""
    return " " in text.strip() and not any(c.isdigit() for c in text.split()[0])


def _widths(columns: Sequence[_Column], width: int) -> list[int] | None:
    """Choose a width for each column, wrapping texts as far as needed; None if numbers do not fit."""
    room = width - GAP * (len(columns) - 1)
    if sum(c.full for c in columns) <= room:
        return [c.full for c in columns]
    fixed = sum(c.full for c in columns if not c.is_text)
    texts = [c for c in columns if c.is_text]
    if not texts or fixed + sum(c.least for c in texts) > room:
        return None
    left, shares = room - fixed, dict[int, int]()
    for c in sorted(texts, key=lambda c: c.full):  # short ones get what they need, the longest share the rest
        shares[id(c)] = min(c.full, max(c.least, left // (len(texts) - len(shares))))
        left -= shares[id(c)]
    return [shares.get(id(c), c.full) for c in columns]


def _stacked(table: Table, columns: Sequence[_Column], width: int) -> list[TextRow] | None:
    """Put intervals below their numbers and wrap texts; None if that is still too wide."""
    widths = _widths(columns, width)
    if widths is None:
        return None
    head = _cell_lines([TableCell(h) for h in table.header], columns, widths, table)
    drawn = [TextRow(line, "bold") for line, _ in head] + [
        TextRow("─" * (sum(widths) + GAP * (len(widths) - 1)), "dim")
    ]
    last = _last_slice(table)
    for at, row in enumerate(table.rows):
        own = _cell_lines(row, columns, widths, table)
        drawn += [TextRow(line, "dim" if below else "") for line, below in own]
        if at == last:
            drawn.append(TextRow("─" * (sum(widths) + GAP * (len(widths) - 1)), "dim"))
    return drawn


def _cell_lines(
    row: Sequence[TableCell], columns: Sequence[_Column], widths: Sequence[int], table: Table
) -> list[tuple[str, bool]]:
    """Return the lines of one row, and whether each holds only what is below numbers."""
    parts = []
    for cell, column, width in zip(row, columns, widths, strict=True):
        texts = wrap(cell.text, width) if column.is_text else [cell.text]
        parts.append([*texts, *(wrap(cell.below, width) if cell.below else [])])
    height = max(map(len, parts))
    made = []
    for y in range(height):
        line = []
        for i, (part, width) in enumerate(zip(parts, widths, strict=True)):
            text = part[y] if y < len(part) else ""
            left = i < table.labels or not table.header[i] or columns[i].is_text
            line.append(text.ljust(width) if left else text.rjust(width))
        made.append(
            (
                (" " * GAP).join(line).rstrip(),
                y > 0 and all(not c.is_text or len(p) <= y for c, p in zip(columns, parts, strict=True)),
            )
        )
    return made


def _in_parts(table: Table, columns: Sequence[_Column], width: int) -> list[TextRow]:
    """Split the table into parts, each with the labels of its rows and as many columns of numbers as fit."""
    labels = list(range(table.labels))
    rest = list(range(table.labels, len(table.header)))
    drawn: list[TextRow] = []
    while rest:
        for n in range(len(rest), 0, -1):
            chosen = [*labels, *rest[:n]]
            found = _stacked(table.columns(chosen), [columns[i] for i in chosen], width)
            if found is not None:
                drawn += [*([TextRow("")] if drawn else []), *found]
                rest = rest[n:]
                break
        else:
            return []
    return drawn


def _blocks(table: Table, width: int) -> Iterator[TextRow]:
    """Return one block per row: its labels, then one line per number."""
    for row in table.rows:
        name = " · ".join(filter(None, (c.text for c in row[: table.labels])))
        yield from (TextRow(line, "bold") for line in wrap(name, width))
        for head, cell in zip(table.header[table.labels :], row[table.labels :], strict=True):
            if cell.text or cell.below:
                said = " ".join(filter(None, (f"{head}:" if head else "", cell.text, cell.below)))
                yield from map(TextRow, wrap(f"  {said}", width, "    "))


def _ruled(plain: Sequence[str], table: Table) -> list[TextRow]:
    """Draw lines with a rule below the header and before the averages."""
    rule = TextRow("─" * max(map(len, plain)), "dim")
    last = _last_slice(table)
    drawn = [TextRow(plain[0], "bold"), rule]
    for at, line in enumerate(plain[1:]):
        drawn += [TextRow(line), *([rule] if at == last else [])]
    return drawn


def _last_slice(table: Table) -> int | None:
    """Return the index of the row before the averages, where a rule is drawn."""
    first = next((i for i, kind in enumerate(table.kinds) if kind), 0)
    return first - 1 if first > 0 else None
