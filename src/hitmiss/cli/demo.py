"""`hitmiss demo`: simulate data, then run the same commands that a user would type on real data."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Final

import click

from hitmiss.cli import printing
from hitmiss.cli.demo_files import FILES
from hitmiss.cli.demo_steps import SMALL, STEPS, WITH_FILES, Step
from hitmiss.cli.help import WIDTH, wrap_command
from hitmiss.core.errors import EnvironmentFault, UnknownName
from hitmiss.core.spec import WRITING, opt
from hitmiss.core.text import wrap


def demo(
    output: Annotated[Path, opt("Where it goes.", WRITING, "--output", "-o", metavar="FOLDER", common=True)] = Path(
        "demo"
    ),
    small: Annotated[
        bool, opt("A fiftieth of the data, two short jobs, seconds instead of minutes.", common=True)
    ] = False,
    only: Annotated[
        list[str] | None,
        opt(f"Only this job, in full ({', '.join(s.name for s in STEPS)}). Repeatable.", metavar="JOB", common=True),
    ] = None,
    files: Annotated[
        bool,
        opt("Write the files that the documentation uses into the current folder, and stop.", common=True),
    ] = False,
) -> None:
    """Simulate evaluations, score them and write a report, showing each command before it runs.

    $ hitmiss demo --small
    """
    if files:
        _write_files(Path() if output == Path("demo") else output, only)
        return
    unknown = [name for name in only or () if name not in {step.name for step in STEPS}]
    if unknown:
        raise UnknownName("job of the demo", unknown[0], [step.name for step in STEPS])
    run_steps([step for step in STEPS if not only or step.name in only], output, small=small, is_chosen=bool(only))


def run_steps(
    steps: Sequence[Step], output: Path, *, small: bool, is_chosen: bool = False, brief: bool | None = None
) -> None:
    """Simulate and run some jobs, then write one report about them.

    `is_chosen`: the jobs were named, so they run in full. `brief`: of long outputs print the conclusion, and write the
    whole into a file; by default in a demo of everything at full size.
    """
    short = small and not is_chosen
    brief = not small and not is_chosen if brief is None else brief
    reported: list[str] = []
    media: list[str] = []
    shown = [step for step in steps if not short or step.brief is not None]
    for position, step in enumerate(shown, 1):
        title = f"\n{position} of {len(shown)}: {step.about}"
        if step.lacks:
            printing.note(f"{title}: left out, {step.advice}")
            continue
        printing.note(title)
        data = step.simulate(output / (f"{step.name}_small" if small else step.name), SMALL if small else 1.0)
        with step.server() as address:
            commands = (step.brief if short and step.brief else step.commands)(data)
            for number, words in enumerate(commands, 1):
                kept = data / f"{number}_{words[0]}.txt" if brief else None
                _run_as_typed([word.replace("{server}", address) for word in words], kept)
        if not short and not brief:
            printing.note(f"\nThe data is in {data}; change the command and run it again.")
        reported += [step.reports.format(data=data)] if step.reports else []
        media += ["--media", str(data)] if step.name in WITH_FILES else []
        media += ["--human", str(data / "people.jsonl")] if step.name == "triage" else []
    report = output / ("report_small.html" if small else "report.html")
    few = ["--samples", "3", "--samples-budget", "80000"]
    _run_as_typed(
        ["report", *reported, *media, *few, "--title", "hitmiss demo: simulated evaluations", "-o", str(report)]
    )
    printing.note(f"\nThe report is {report}; open it in a browser.")
    printing.note("All data are simulated; README.txt in each folder says how.")
    if brief:
        printing.note(f"Data and whole outputs are in {output}; change a command and run it again.")
    if short:
        rest = ", ".join(step.name for step in STEPS if step.brief is None)
        printing.note(f"More jobs: hitmiss demo --small --only JOB ({rest}); everything at full size: hitmiss demo")


def _write_files(root: Path, only: list[str] | None) -> None:
    """Write the files of the documentation: those of some jobs, or of all that need no training."""
    if unknown := [name for name in only or () if name not in FILES]:
        raise UnknownName("job of the demo", unknown[0], FILES)
    root.mkdir(parents=True, exist_ok=True)
    lacking = {step.name: step for step in STEPS if step.lacks}
    for name in only or [name for name in FILES if name not in ("ecg", "voices")]:
        if name not in lacking:
            FILES[name](root)
        elif only:
            raise _missing(lacking[name])
        else:
            printing.note(f"! the files of {name} are left out: {lacking[name].advice}")
    printing.note("wrote simulated files; README.txt beside them says what they are")


def demo_data(job: str, folder: str | Path, *, share: float = SMALL) -> Path:
    """Write the simulated data of one job of the demo into a folder, with a README that says what it is.

    Parameters
    ----------
    job
        `asvspoof5`, `voices`, `toxicity`, `triage`, `llm`, `ecg` or `review`.
    folder
        Where to write; existing data of the same kind is kept.
    share
        The share of the full size.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UnknownName
        For an unknown job.
    EnvironmentFault
        If the job needs a package that is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in demo_data("asvspoof5", folder, share=0.001).glob("scores*"))
    ['scores_a.tsv', 'scores_b.tsv']
    """
    found = {step.name: step for step in STEPS}
    if job not in found:
        raise UnknownName("job of the demo", job, found)
    if found[job].lacks:
        raise _missing(found[job])
    return found[job].simulate(Path(folder), share)


def _missing(step: Step) -> EnvironmentFault:
    return EnvironmentFault.of("job-cannot-run", step_name=step.name, advice=step.advice)


LONGEST: Final = 9
"""Lines of an output that the demo of everything prints as they are."""
LAST: Final = 3
"""Lines that it prints of a longer output without a conclusion."""


def _run_as_typed(words: list[str], kept: Path | None = None) -> None:
    """Show the command, run it, and stop the demo with its exit code if it fails.

    With `kept`, a long output is written there, and its conclusion is printed.
    """
    from hitmiss.cli.main import run

    lines = wrap_command(shlex.join(["hitmiss", *words]), WIDTH - 4)
    printing.note("\n$ " + " \\\n  ".join(lines) + ("" if kept else "\n"))
    if kept is None:
        code = run(words)
    else:
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = run(words)
        _print_excerpt(printed.getvalue(), kept)
    if code != 0:
        raise click.exceptions.Exit(code)


def _print_excerpt(text: str, kept: Path) -> None:
    """Print a short output; of a long one the conclusion, or its last lines, and where the whole is."""
    from hitmiss.conclude.headline import GOOD

    lines = text.rstrip().splitlines()
    if len(lines) <= LONGEST:
        printing.out("\n".join(lines))
        return
    kept.write_text(text, encoding="utf-8")
    if GOOD in lines:
        above = "\n".join(lines[: lines.index(GOOD)]).rstrip()
        printing.out("\n".join(wrap("→ " + " ".join(above.split("\n\n")[-1].split()), WIDTH, "  ")))
    else:
        printing.out("\n".join(lines[-LAST:]))
    printing.note(f"({len(lines)} lines in {kept})")
