"""Writes docs/metrics.md, docs/cli.md, docs/api*.md, docs/findings.md and docs/llms.txt: `python docs/reference.py`.

A test keeps pages and code the same.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import hitmiss
from hitmiss.cli.main import VERBS
from hitmiss.core.metric import Metric
from hitmiss.core.registry import all_metrics
from hitmiss.findings.catalogue import everything
from hitmiss.findings.render import parts_of

HERE = Path(__file__).parent
HEAD = """# Metrics

<!-- Written by `python docs/reference.py` from the docstrings; do not edit. -->

Every metric takes arrays and gives a number
(`hitmiss.metrics`), and works by its name in `hitmiss score -m NAME` and `hm.measure(trials, [NAME])`. Case, dashes and
underscores do not matter there, and usual synonyms are understood: `AUC`, `f1_score`, `min-DCF`.

| metric | better | range | columns | settings | score kinds |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    metrics = [m for m in all_metrics().values() if m.function.__module__.startswith("hitmiss.")]
    return HEAD + "".join(map(row, metrics)) + "".join(map(section, metrics))


def row(metric: Metric) -> str:
    """A metric's line in the table."""
    settings = ", ".join(f"{k}={v}" for k, v in metric.defaults.items())
    low, high = metric.range
    cells = [f"[{metric.name}](#{metric.name})", metric.best, f"{low:g}..{high:g}", ", ".join(metric.columns)]
    return f"| {' | '.join([*cells, settings, ', '.join(metric.kinds) or 'any'])} |\n"


def section(metric: Metric) -> str:
    """A metric's docstring as a section."""
    text, examples = [], []
    for line in (inspect.getdoc(metric.function) or "").splitlines():
        is_example = bool(examples) or line.startswith(">>>")
        # Two blanks before a comment, as the formatter has it: the page is formatted, docstrings are not.
        (examples if is_example else text).append(re.sub(r" {3,}# ", "  # ", line) if is_example else line)
    code = "\n```pycon\n" + "\n".join(examples) + "\n```\n" if examples else ""
    also = f"\nAlso understood as: {', '.join(f'`{name}`' for name in metric.also)}.\n" if metric.also else ""
    return f"\n## {metric.name}\n\n" + "\n".join(text).strip() + "\n" + also + code


API = """# Python

<!-- Written by `python docs/reference.py`; do not edit. -->

**What is stable.** Versions follow semantic versioning. It covers the names below with their parameters, the documented
names of the protocol modules (`hitmiss.protocols.*`), the commands and their options, exit codes and error codes, and the
JSON of results. Every other module path may change at any time. Before 1.0 a minor version may change a public name: the old
name then stays for at least one minor version, gives a `DeprecationWarning` that names its successor and the version in
which it ends, and is listed in the changelog under *Changed*. A change after which the same command prints another number is
listed under *Numbers changed*, in every version.

```python
import hitmiss as hm
```

| job | names |
|---|---|
"""
JOBS = {
    "data": ("Read and hold trials", "Read files, tables and arrays into trials, and decide, calibrate or fuse their scores."),
    "measuring": ("Measure", "Measure trials or files, and read the results: numbers with intervals, for all trials and for each slice."),
    "comparing": ("Compare and decide", "Differences, rankings, gates and claims."),
    "running": ("Run models", "Detectors, attacks, drift and probes."),
    "showing": ("Show and pass on", "Reports, figures, trackers, and the command line from Python."),
    "training": ("In training loops and plug-ins", "Metrics on arrays and batches, and what you register yourself."),
    "errors": ("Errors and warnings", "What is raised and what is warned of."),
}  # fmt: skip
OF_JOB = {
    "data": "read Trials Header ReadSpec decide at_bands guaranteed best_threshold calibrate recalibrate fuse demo_data",
    "measuring": "evaluate measure evaluate_streamed over_repeats Design Results Estimate Tally",
    "comparing": "compare Comparison rank Ranking board gate verify open_run",
    "running": "detect attack read_signals perturbation drift probe",
    "showing": "report log run",
    "training": "Accumulator compute_metrics scorer metric register register_attack",
    "errors": "HitmissError UsageError DataError MissingFile EnvironmentFault ResultWarning",
}
"""Every public name, by the job that it is for; names that are in none are on the page of their kind."""


def jobs() -> dict[str, list[str]]:
    """The public names by job; a new one is found on the first page until it is given a job."""
    named = {job: names.split() for job, names in OF_JOB.items()}
    placed = {name for names in named.values() for name in names}
    others = [n for n in hitmiss.__all__ if n not in placed and n not in ("__version__", "metrics", "figures")]
    return {**named, "measuring": [*named["measuring"], *others]}


def api() -> str:
    """The first page: what is stable, and every name with its page."""
    rows = [
        f"| [{JOBS[job][0]}](api_{job}.md) | {', '.join(f'[`hm.{n}`](api_{job}.md#{_home(n)})' for n in names)} |\n"
        for job, names in jobs().items()
    ]
    return API + "".join(rows) + MODULES


def api_of(job: str) -> str:
    """The page of one job, for mkdocstrings to fill in."""
    title, about = JOBS[job]
    text = f"# {title}\n\n<!-- Written by `python docs/reference.py`; do not edit. -->\n\n{about}\n"
    for name in jobs()[job]:
        members = (
            "\n      members: null\n      inherited_members: true\n      filters: ['!^_']" if name in WHOLE else ""
        )
        text += f"\n::: {_home(name)}\n    options:\n      heading: hm.{name}\n      heading_level: 2{members}\n"
    return text


def _home(name: str) -> str:
    """Where a public name is defined, as mkdocstrings and its anchors write it."""
    module, _, there = hitmiss._HOMES[name].rpartition(".")
    home = getattr(importlib.import_module(module), there)
    return f"{home.__module__}.{home.__qualname__}"


MODULES = """
## Modules

`hm.metrics` has every metric as a function of arrays: [Metrics](metrics.md). `hm.figures` has the figures as objects that
hold their numbers and draw themselves (`DetDisplay`, `RocDisplay`, `PrDisplay`, `HistogramDisplay`, `save`, …):
[Reports](report.md#figures-for-papers).
"""
WHOLE = ("Accumulator", "Trials", "Results", "Design", "ReadSpec", "Comparison", "Ranking")
"""Classes whose methods are listed too."""
CLI = """# Commands

<!-- Written by `python docs/reference.py` from `hitmiss VERB --help-all`; do not edit. -->

An option that takes one value is given once: a second value is an error that names both. Options that take several
(`-m`, `--by`, `--unit`, `--gap`, `--where`, `--column`, `--fail-if` …) are repeated, and all of them are used.
"""


def cli() -> str:
    """The help of every verb."""
    shown = zip(VERBS, shown_helps(), strict=True)
    return CLI + "".join(f"\n## hitmiss {verb}\n\n```text\n{text}\n```\n" for verb, text in shown)


def shown_helps() -> list[str]:
    """What `hitmiss VERB --help-all` prints for each verb where nobody looks at a terminal, 100 columns wide."""
    plain = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    every = (
        "from hitmiss.cli.main import VERBS, run\nfor verb in VERBS:\n    run([verb, '--help-all'])\n    print('\\x1e')"
    )
    done = subprocess.run([sys.executable, "-c", every], capture_output=True, encoding="utf-8", env=plain, check=True)
    texts = done.stdout.split("\x1e")[:-1]
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in texts]


FINDINGS = """# Findings

<!-- Written by `python docs/reference.py` from the catalogue; do not edit. -->

Everything that hitmiss concludes, warns of or refuses
is a finding: a code, a severity, what it is about, and values. Programs should decide on codes and values, never on a
sentence. `verdict` in `--json` and `results.verdict` hold findings; `error.code` is the code of a refusal up to its slash,
`error.finding` all of it. Words in angle brackets are values.

| severity | means |
|---|---|
| info | all is well, or what was done; part of another sentence |
| note | what is not known, or was not checked |
| warning | what speaks against the numbers or the detector |
| alarm | the numbers do not mean what they seem to mean: `score --strict` refuses them |
| error | a refusal: there are no numbers |
"""


def findings() -> str:
    """Every code of the catalogue with its meaning and what to do."""
    text, home = FINDINGS, ""
    for package, code, entry in sorted(everything(), key=lambda found: (found[0], found[1])):
        if package != home:
            text += f"\n## {package}\n\n| code | severity | meaning | what to do |\n|---|---|---|---|\n"
            home = package
        cells = [f"`{code}`", entry.severity, shown(entry.text), shown(entry.fix)]
        text += f"| {' | '.join(cells)} |\n"
    return text


def shown(template: str) -> str:
    """A template with its options as the command line writes them, and its values in angle brackets."""
    made = ""
    for part in parts_of(template):
        words = part.field + (f":{part.format}" if part.format and part.field.startswith("-") else "")
        value = f"`{words.removesuffix('?')}`" if words.startswith("-") else f"‹{part.field}›" if part.field else ""
        made += html.escape(part.literal, quote=False) + value
    return " ".join(made.replace("|", "\\|").replace("*", "\\*").split())


LLMS = """# hitmiss

> Evaluates detectors (spoofed speech, deepfakes, toxic text, ECG attacks, language models as judges): the official numbers
> with confidence intervals, per domain, with a verdict. Command line and Python; nothing is guessed, faulty files are refused.

One row per answer: an item, its true label, a score or decision, and slices. `hitmiss score FILE -m eer --positive CLASS`,
`hm.evaluate(table, label=…, score=…, positive=…, metrics="eer", by="codec", unit="speaker", bootstrap=1000)`,
`hitmiss init FILE` for files of your own. `--json` on every verb; exit codes 0 to 5.

## Pages

"""


def llms() -> str:
    """The pages for language models: each with its title and its first sentence (llms.txt)."""
    text = LLMS
    for path in sorted(HERE.rglob("*.md")):
        if path.parent.name != "adr" and not path.name.startswith("api_"):
            body = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", path.read_text(encoding="utf-8"), flags=re.S)
            found = re.match(r"# (?P<title>.+)\n+(?P<rest>[\s\S]*)", body.strip())
            if found:
                first = next((p for p in found["rest"].split("\n\n") if re.match(r"[A-Z`*]", p.strip())), "")
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", " ".join(first.split()))
                sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", plain)[0]
                text += f"- [{found['title']}]({path.relative_to(HERE).with_suffix('.html').as_posix()}): {sentence}\n"
    return text


def schema() -> str:
    """The JSON Schema of stored results, as `hitmiss export --schema` prints it."""
    from hitmiss.reports.schema import results_schema

    return json.dumps(results_schema(), indent=1) + "\n"


PAGES = {
    "metrics.md": page,
    "api.md": api,
    **{f"api_{job}.md": partial(api_of, job) for job in JOBS},
    "cli.md": cli,
    "findings.md": findings,
    "llms.txt": llms,
    "schema/results-1.json": schema,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
    import keywords  # beside this file

    keywords.FILE.write_text(keywords.keywords(), encoding="utf-8")
