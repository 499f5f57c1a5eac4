"""Values of options: their types, what is refused, and what a verb loads before it works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest

from hitmiss.cli.options import Verb, arg
from hitmiss.core.errors import UnknownName
from hitmiss.core.spec import opt


def verb(
    texts: Annotated[list[str] | None, arg("Texts.")] = None,
    text: Annotated[str | None, opt("A text.")] = None,
    whole: Annotated[int, opt("A whole number.")] = 3,
    number: Annotated[float, opt("A number.")] = 0.5,
    path: Annotated[Path | None, opt("A path.")] = None,
    several: Annotated[list[str] | None, opt("Several.")] = None,
    numbers: Annotated[list[float] | None, opt("Several numbers.")] = None,
    one_of: Annotated[Literal["a", "b"], opt("One of two.")] = "a",
    flag: Annotated[bool, opt("A flag.")] = False,
    on: Annotated[bool, opt("On by default.")] = True,
    either: Annotated[bool | None, opt("Neither by default.")] = None,
) -> None:
    """Take values.

    $ hitmiss verb
    """
    seen.append({**locals()})


seen: list[dict[str, Any]] = []


def called(*words: str) -> dict[str, Any]:
    """Return what the verb was called with where it is not the default."""
    seen.clear()
    command = Verb("verb", verb)
    with command.make_context("hitmiss verb", list(words)) as context:
        command.invoke(context)
    usual = {"whole": 3, "number": 0.5, "one_of": "a", "flag": False, "on": True}
    return {name: value for name, value in seen[0].items() if value != usual.get(name)}


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ([], {}),
        (["a", "b"], {"texts": ["a", "b"]}),
        (["--text", ""], {"text": ""}),
        (["--text", "7"], {"text": "7"}),
        (["--whole", "-7"], {"whole": -7}),
        (["--number", "1e3"], {"number": 1000.0}),
        (["--number", "inf"], {"number": float("inf")}),
        (["--path", "x/y"], {"path": Path("x/y")}),
        (["--several", "a", "--several", "b"], {"several": ["a", "b"]}),
        (["--numbers", "1", "--numbers", "0.5"], {"numbers": [1.0, 0.5]}),
        (["--one-of", "b"], {"one_of": "b"}),
        (["--flag"], {"flag": True}),
        (["--no-on"], {"on": False}),
        (["--either"], {"either": True}),
        (["--no-either"], {"either": False}),
    ],
)
def test_a_value_has_the_type_that_the_verb_declares(words: list[str], given: dict[str, Any]) -> None:
    found = called(*words)
    assert found == given and [type(v) for v in found.values()] == [type(v) for v in given.values()]


@pytest.mark.parametrize("words", [["--whole", "7.0"], ["--whole", "x"], ["--number", "x"], ["--flag=1"], ["--none"]])
def test_another_value_is_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        called(*words)


def test_an_unknown_choice_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="unknown value"):
        called("--one-of", "c")


def test_a_required_value_is_required() -> None:
    def needs(name: Annotated[str, arg("A name.")]) -> None:
        """Need a name."""

    with pytest.raises(click.UsageError, match="name"):
        Verb("needs", needs).make_context("hitmiss needs", [])


def test_a_verb_starts_without_pydantic(tmp_path: Path) -> None:
    """A slow import at the start of every verb would be seen here first."""
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob\na,1,0.9\nb,0,0.2\n")
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--languages", "en", "--bootstrap", "7"]
    code = f"import sys\nfrom hitmiss.cli.main import run\nassert run({words!r}) == 0\nprint('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
