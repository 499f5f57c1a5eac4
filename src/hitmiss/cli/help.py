"""Help: the verbs by job; the common options of a verb first, all of them with `--help-all`; one example each."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

import click

from hitmiss.cli.options import Verb, VerbOption
from hitmiss.core.spec import CERTAINTY, MEASURING, OTHERS, READING, RUNNING, WRITING

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS: Final = (OTHERS, MEASURING, READING, CERTAINTY, RUNNING, WRITING)
"""The groups of options in the order of the help."""
ALWAYS: Final = (
    ("-h, --help", "Show the common options and stop."),
    ("--help-all", "Show every option and stop."),
)
WIDTH: Final = 80
NAMES: Final = 28
"""Columns that names may take beside their texts; a longer one has a line of its own."""


def verb_help(verb: Verb, *, is_whole: bool) -> str:
    """Return the help of a verb: its common options, or all of them in groups."""
    formatter = click.HelpFormatter(max_width=WIDTH)
    ctx = click.Context(verb, info_name=f"hitmiss {verb.name}")
    formatter.write_usage(f"hitmiss {verb.name}", " ".join(verb.collect_usage_pieces(ctx)))
    with formatter.indentation():
        for paragraph in (verb.help or "").split("\n\n"):
            formatter.write_paragraph()
            formatter.write_text(" ".join(paragraph.split()))
    arguments = [p for p in verb.params if isinstance(p, click.Argument)]
    _section(formatter, "Arguments", [(a.make_metavar(ctx), getattr(a, "about", "")) for a in arguments])
    options = [p for p in verb.params if isinstance(p, VerbOption)]
    common = [p for p in options if p.declared.is_common]
    if is_whole or len(common) == len(options):
        for group in GROUPS:
            own = [p for p in options if p.declared.group == group]
            _section(formatter, group, [*_records(own, ctx), *(ALWAYS if group == WRITING else ())])
        if not any(p.declared.group == WRITING for p in options):
            _section(formatter, WRITING, list(ALWAYS))
    else:
        _section(formatter, "Common options", [*_records(common, ctx), *ALWAYS])
        formatter.write_paragraph()
        formatter.write_text(f"{len(options) - len(common)} more options: hitmiss {verb.name} --help-all")
    if verb.example:
        formatter.write_paragraph()
        formatter.write_heading("Example")
        formatter.write(" \\\n".join(f"  {line}" for line in wrap_command(verb.example, formatter.width - 6)) + "\n")
    return formatter.getvalue().rstrip("\n")


def overview(about: str, jobs: Sequence[tuple[str, Sequence[Verb]]], options: Sequence[click.Parameter]) -> str:
    """Return the help of the whole command: its verbs by job, with their summaries, and the options of all verbs."""
    formatter = click.HelpFormatter(max_width=WIDTH)
    formatter.write_usage("hitmiss", "VERB [FILES] [OPTIONS]")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(about)
    for title, verbs in jobs:
        rows = [(verb.name or "", (verb.help or "").split("\n")[0].rstrip(".")) for verb in verbs]
        _section(formatter, title, rows)
    ctx = click.Context(click.Command("hitmiss"))
    _section(formatter, "Options of every verb", [*_records(options, ctx), ALWAYS[0]])
    formatter.write_paragraph()
    formatter.write_text("The options of a verb: hitmiss VERB --help")
    return formatter.getvalue().rstrip("\n")


def wrap_command(command: str, width: int) -> list[str]:
    """Return the lines of a command; an option and its value stay together, and so do its values if they are short."""
    quoted = re.sub(r"""'[^']*'|"[^"]*\"""", lambda hit: hit[0].replace(" ", "\0"), command)
    glued = re.sub(
        r"(?<= )-\S+(?: [^-\s]\S*)+",
        lambda hit: hit[0].replace(" ", "\0", -1 if len(hit[0]) <= width // 2 else 1),
        quoted,
    )
    lines = textwrap.wrap(glued, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return [line.replace("\0", " ") for line in lines]


def _records(options: Sequence[click.Parameter], ctx: click.Context) -> list[tuple[str, str]]:
    return [record for option in options if (record := option.get_help_record(ctx)) is not None]


def _section(formatter: click.HelpFormatter, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        widths = [len(name) for name, _ in rows]
        with formatter.section(title):  # a name that is longer than the others does not push their texts aside
            formatter.write_dl(list(rows), col_max=max((n for n in widths if n <= NAMES), default=NAMES))
