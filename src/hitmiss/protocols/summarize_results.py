"""The script summarize_results.py of the triage evaluation document: Wilson intervals, and McNemar's test of tools.

    python -m hitmiss.protocols.summarize_results results.jsonl [--bootstrap 0 …]
    python -m hitmiss.protocols.summarize_results --results-dir results --out summary.json --out-md summary.md

The first words are results files, or `--results-dir` names a folder of them; further options are those of `hitmiss
triage`. `--out` writes the numbers and tests as JSON, `--out-md` as tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import HitmissError
from hitmiss.core.spec import READING, WRITING, opt
from hitmiss.core.trials import Trials
from hitmiss.engine.comparison import Comparison
from hitmiss.evaluation.protocol import compare_trials, find_protocol
from hitmiss.io.triage import read_results, results_in
from hitmiss.protocols.triage import Triage, evaluate_trials

COMPARED = ("accuracy", "coverage")


def main(words: Sequence[str]) -> int:
    """Read the script's own flags; all other words are those of `hitmiss triage`. Return the exit code."""
    own = import_module("hitmiss.cli.options").Verb("summarize_results", summarize).by_spelling
    try:
        parsed = import_module("hitmiss.cli.words").parse(words, own)
        given = {name.lstrip("-").replace("-", "_"): Path(values[0]) for name, values in parsed.values.items()}
        rest = [word for word in parsed.words if word.partition("=")[0] not in own]
        return summarize([*rest, *(f"--{name}" for name in sorted(parsed.everywhere))], **given)
    except HitmissError as error:
        failures = import_module("hitmiss.cli.failures")
        print(f"hitmiss: {failures.sentence(error)}", file=sys.stderr)
        return int(failures.exit_code(error))


def summarize(
    words: Sequence[str],
    results_dir: Annotated[Path | None, opt("A folder of results files.", READING)] = None,
    out: Annotated[Path | None, opt("Write the numbers and tests as JSON.", WRITING)] = None,
    out_md: Annotated[Path | None, opt("Write the numbers and tests as tables.", WRITING)] = None,
) -> int:
    """Print the numbers of all files, then for each model asked both ways the effect of tools; return the exit code."""
    at = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    files, options = [*words[:at], *(map(str, results_in(results_dir)) if results_dir else ())], words[at:]
    run = import_module("hitmiss.cli.main").run
    code = int(run(["triage", *files, *options]))
    for file in files if code == 0 else ():
        for model in _asked_both_ways(read_results(file)):
            sides = [f"{file}[model={model},tools={mode}]" for mode in ("no-tools", "tools")]
            named = [word for metric in COMPARED for word in ("-m", metric)]
            code = max(code, int(run(["compare", *sides, "-p", "triage", *named, "--full"])))
    if code == 0:
        _write(files, out, out_md)
    return code


def _write(files: Sequence[str], out: Path | None, out_md: Path | None) -> None:
    if out is None and out_md is None:
        return
    made = {Path(file).name: evaluate_trials(read_results(file), bootstrap=0) for file in files}
    tests = {name: dict(_tests(triage.trials)) for name, triage in made.items()}
    if out is not None:
        found = {
            name: {**triage.to_dict(), "tools": {model: test.to_dict() for model, test in tests[name].items()}}
            for name, triage in made.items()
        }
        artifacts.write(out, json.dumps({"schema": 1, "files": found}, indent=1, ensure_ascii=False) + "\n")
    if out_md is not None:
        artifacts.write(out_md, "\n\n".join(_page(name, triage, tests[name]) for name, triage in made.items()) + "\n")


def _page(name: str, triage: Triage, tests: Mapping[str, Comparison]) -> str:
    """Return the tables of a file as Markdown."""
    write = import_module("hitmiss.reports.markdown").markdown
    tables = import_module("hitmiss.reports.triage_tables").tables(triage)
    parts = [f"# {name}", write(tables, triage.figures.signature)]
    for model, test in tests.items():
        rows = import_module("hitmiss.reports.comparison_tables").tables(test, "fake")
        parts += [f"## {model}: tools against no tools", write(rows, test.signature)]
    return "\n\n".join(parts)


def _tests(trials: Trials) -> list[tuple[str, Comparison]]:
    """Return the comparison of no tools with tools, for each model that was asked both ways."""
    design = Design(protocol=find_protocol("triage"), metrics=COMPARED)
    found = []
    for model in _asked_both_ways(trials):
        sides = {mode: trials.where(model=model, tools=mode) for mode in ("no-tools", "tools")}
        made = compare_trials(sides, design)
        assert isinstance(made, Comparison)
        found.append((model, made))
    return found


def _asked_both_ways(trials: Trials) -> list[str]:
    if not {"model", "tools"} <= {*trials.header.runs}:
        return []
    pairs = trials.frame.select("model", "tools").unique().rows()
    return sorted({m for m, _ in pairs if {(m, "tools"), (m, "no-tools")} <= {*pairs}})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
