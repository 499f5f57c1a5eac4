"""Help and completion: options in groups, one example per verb, summaries that are not cut, values that complete.

Everything is settled here by the names of options, so that a verb declares each option once and nothing else.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

NAMES: Final = {"help_option_names": ["-h", "--help"]}
"""For the context of every command."""
READING: Final = "Reading files"
MEASURING: Final = "What is measured"
CERTAINTY: Final = "Intervals and tests"
WRITING: Final = "Output"
OTHER: Final = "Options"
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    MEASURING: (
        "protocol", "metric", "by", "matrix", "gap", "threshold", "group", "identity", "languages", "fail_if", "max_regression",
        "baseline", "calibrate_on", "calibrate_key", "calibration", "seeds", "thresholds", "choose", "rates", "costs",
    ),
    READING: (
        "key", "column", "key_column", "score_column", "score_kind", "positive", "negative", "positive_value", "higher", "on_nan",
        "dedupe", "allow_missing", "layout", "separator", "encoding", "decimal", "where", "human", "dataset", "media", "match",
        "abstain", "missing", "labels", "read", "stream", "counts", "memory", "scratch", "cluster",
    ),
    CERTAINTY: ("bootstrap", "unit", "seed", "level", "interval", "stratify", "test", "correction", "force", "decide", "strict"),
    WRITING: (
        "output", "report", "json", "junit", "title", "name", "static", "no_samples", "redact_text", "samples", "budget", "pdf", "to",
        "raw", "percent", "no_intervals", "documented", "dump_errors", "max_errors", "schema", "help",
    ),
}  # fmt: skip
EXAMPLES: Final[Mapping[str, str]] = {
    "score": "hitmiss score scores.tsv --key key.tsv -m eer --by codec --bootstrap 1000",
    "toxicity": "hitmiss toxicity --pred-dir predictions --run-tag baseline",
    "threshold": "hitmiss threshold dev_en.csv --test test_en.csv --maximize f1",
    "triage": "hitmiss triage results.jsonl --by generator",
    "llm": "hitmiss llm dataset.jsonl --models openai/gpt-5 --output run",
    "compare": "hitmiss compare ours.tsv baseline.tsv --key key.tsv -m eer --by codec",
    "gate": "hitmiss gate results.json --fail-if 'eer > 0.05'",
    "report": "hitmiss report scores.tsv --key key.tsv -p asvspoof5 -o report.html",
    "export": "hitmiss export results.json --to latex",
    "validate": "hitmiss validate scores.tsv --key key.tsv",
    "verify": "hitmiss verify results.json scores.tsv --key key.tsv",
    "sql": "hitmiss sql trials --by codec",
    "review": "hitmiss review dataset.jsonl --store verdicts.db",
    "detect": "hitmiss detect --detector model.onnx --data eval.tsv --output run",
    "attack": "hitmiss attack --detector model.onnx --data test.npz --family pgd --strengths 0.1 0.5 --output run",
    "drift": "hitmiss drift run --by codec",
    "shortcuts": "hitmiss shortcuts eval.tsv --by seconds",
    "probe": "hitmiss probe embeddings.npz --key key.tsv --label codec",
    "list": "hitmiss list metrics",
    "show": "hitmiss show eer",
    "demo": "hitmiss demo --small",
    "doctor": "hitmiss doctor",
}


class GroupedCommand(TyperCommand):
    """A verb whose help shows its options in groups, and an example."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, each group under its title."""
        found: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            kind = "Arguments" if param.param_type_name == "argument" else group_of(param.name or "")
            found.setdefault(kind, []).append(_plain(record))
        for title in ("Arguments", OTHER, *GROUPS):
            if title in found:
                with formatter.section(title):
                    formatter.write_dl(found[title])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """One example."""
        del ctx
        example = EXAMPLES.get(self.name or "")
        if example:
            with formatter.section("Example"):
                indent = "  "
                lines = textwrap.wrap(example, formatter.width - 6, subsequent_indent=indent, break_on_hyphens=False)
                formatter.write(" \\\n".join(f"{indent}{line}" for line in lines) + "\n")


class Verbs(TyperGroup):
    """The verbs with their whole summaries."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A line per verb, wrapped and never cut."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, (command.help or "").strip().split("\n")[0].rstrip(".")))
        with formatter.section("Verbs"):
            formatter.write_dl(rows)


def _plain(record: tuple[str, str]) -> tuple[str, str]:
    """An option without the name that Python has for the type of its values."""
    return record[0].replace("<list[str]>", "TEXT").replace("<str>", "TEXT").replace("<int>", "N"), record[1]


def group_of(name: str) -> str:
    """The group that an option belongs to.

    >>> group_of("bootstrap"), group_of("score_kind"), group_of("detector")
    ('Intervals and tests', 'Reading files', 'Options')
    """
    return next((title for title, names in GROUPS.items() if name in names), OTHER)


def complete_values(command: Any) -> None:
    """Let the options of a command, and of its verbs, complete their values."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for param in part.get_params(typer.Context(part, **part.context_settings)):
            values = VALUES.get(param.name or "")
            if values is not None and hasattr(param, "_custom_shell_complete"):
                param._custom_shell_complete = _completing(values)


def _completing(values: Callable[[Mapping[str, Any]], Iterator[str]]) -> Callable[[Any, Any, str], list[str]]:
    def complete(ctx: Any, _param: Any, incomplete: str) -> list[str]:
        head, comma, tail = incomplete.rpartition(",")
        return [f"{head}{comma}{value}" for value in values(ctx.params) if value.startswith(tail)]

    return complete


def _metrics(_: Mapping[str, Any]) -> Iterator[str]:
    from hitmiss.registry import all_metrics

    yield from sorted(all_metrics())


def _protocols(_: Mapping[str, Any]) -> Iterator[str]:
    from hitmiss.protocol import protocols

    yield from sorted(protocols())


def _columns(given: Mapping[str, Any]) -> Iterator[str]:
    """The columns that the first lines of the files at hand name."""
    for name in ("key", "scores", "runs", "files", "predictions"):
        value = given.get(name)
        for path in value if isinstance(value, list | tuple) else [value]:
            if isinstance(path, str) and Path(path).is_file():
                with Path(path).open(encoding="utf-8", errors="replace") as file:
                    first = file.readline(100_000).rstrip("\r\n")
                yield from first.split("\t" if "\t" in first else "," if "," in first else " ")


def _words(*words: str) -> Callable[[Mapping[str, Any]], Iterator[str]]:
    return lambda _given: iter(words)


VALUES: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    "metric": _metrics,
    "protocol": _protocols,
    "by": _columns,
    "unit": _columns,
    "matrix": _columns,
    "group": _columns,
    "score_kind": _words("llr", "logit", "probability", "raw"),
    "on_nan": _words("refuse", "drop", "worst"),
    "interval": _words("auto", "percentile", "bca"),
    "calibration": _words("affine", "pav"),
    "to": _words("latex", "markdown", "csv", "xlsx", "json", "model-card"),
}
