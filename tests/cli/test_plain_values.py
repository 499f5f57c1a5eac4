"""Plain values of options: the same as typer gives, and without what typer imports for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from hitmiss.cli import main
from hitmiss.cli.main import run

VALUES = [
    "",
    "7",
    "007",
    "-7",
    "+7",
    "1_000",
    " 7",
    "7.0",
    "1e3",
    "nan",
    "inf",
    "x",
    "٧",
    "9" * 30,
    "true",
    "a b",
    "--",
]


def verb(
    texts: Annotated[list[str] | None, typer.Argument()] = None,
    text: Annotated[str | None, typer.Option()] = None,
    whole: Annotated[int, typer.Option()] = 3,
    maybe: Annotated[int | None, typer.Option()] = None,
    number: Annotated[float, typer.Option()] = 0.5,
    ranged: Annotated[int, typer.Option(min=0, max=10)] = 1,
    path: Annotated[Path | None, typer.Option()] = None,
    several: Annotated[list[str] | None, typer.Option()] = None,
    flag: Annotated[bool, typer.Option("--flag")] = False,
) -> None:
    seen.append((texts, text, whole, maybe, number, ranged, path, several, flag))


seen: list[tuple[Any, ...]] = []


def called(words: list[str], plainly: bool) -> tuple[str, tuple[Any, ...]]:
    """What the verb was called with, with the types of it all; or how the call failed."""
    app = typer.Typer()
    app.command()(verb)
    command = typer.main.get_command(app)
    if plainly:
        main.take_plainly(command)
    seen.clear()
    try:
        command.main(words, standalone_mode=False)
    except typer.TyperException as error:
        return error.format_message(), ()
    return repr([type(v) for v in seen[0]]), seen[0]


CALLS = [
    [],
    ["a", "b"],
    ["--flag"],
    ["--path", "x/y"],
    ["--several", "a", "--several", "b"],
    *([f"--{name}={value}"] for name in ("text", "whole", "maybe", "number", "ranged", "several") for value in VALUES),
]


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_every_value_is_what_typer_makes_of_it(at: int) -> None:
    plain, usual = called(CALLS[at], True), called(CALLS[at], False)
    assert repr(plain) == repr(usual)  # as texts: NaN is not equal to itself


def test_a_required_value_is_still_required() -> None:
    def needs(name: Annotated[str, typer.Argument()]) -> None: ...

    app = typer.Typer()
    app.command()(needs)
    command = typer.main.get_command(app)
    main.take_plainly(command)
    with pytest.raises(typer.TyperException, match="name"):
        command.main([], standalone_mode=False)


def test_where_typer_says_nothing_its_own_way_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob\na,1,0.9\nb,0,0.2\n")
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--languages", "en", "--bootstrap", "7"]
    assert run([*words, "--json"]) == 0
    plain = capsys.readouterr().out
    monkeypatch.setattr(main, "DECLARED", "no_such_attribute")
    main._parser.cache_clear()  # as in a process that starts with such a typer
    try:
        assert run([*words, "--json"]) == 0
    finally:
        main._parser.cache_clear()
    assert capsys.readouterr().out == plain


def test_a_verb_starts_without_pydantic(tmp_path: Path) -> None:
    """Fails when typer is built otherwise, so that somebody sees that every start has become slower."""
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob\na,1,0.9\nb,0,0.2\n")
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--languages", "en", "--bootstrap", "7"]
    code = f"import sys\nfrom hitmiss.cli.main import run\nassert run({words!r}) == 0\nprint('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
