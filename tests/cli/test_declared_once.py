"""Every option is declared once: a field of a spec, an option that verbs share, or an option of one verb."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from tests.source import trees

import hitmiss
from hitmiss.cli.main import VERBS, find_verb
from hitmiss.cli.options import VerbOption
from hitmiss.core.options import SPECS, option_name
from hitmiss.core.spec import Option, options_of

OWN = {
    "compare": {"--threshold", "--higher", "--score-column", "--force"},  # once for all runs, or per run; of any runs
    "toxicity": {"--threshold"},  # of all languages, over those in the files
    "drift": {"--threshold", "--by", "--protocol"},  # score > t, and the conditions instead of slices
    "attack": {"--threshold", "--layout", "--seed"},  # per class; the axes of arrays; of all random numbers
    "detect": {"--protocol"},  # as in drift, shortcuts and validate: it reads, and asks for nothing
    "review": {"--higher", "--allow-missing", "--media", "--seed"},  # of items that are shown, and of a sample of them
    "shortcuts": {"--by", "--unit", "--protocol"},  # single columns
    "init": {"--unit", "--force"},  # none is a value; a file is written over
    "export": {"--metric"},  # picks from results
    "triage": {"--human"},
    "replace": {"--by", "--threshold", "--seed", "--level"},  # of the decisions in use; which texts choose; all groups
    "prevalence": {"--where", "--name"},  # slices of stored results; what another tool calls the detector
    "validate": {"--protocol"},  # as in drift, detect and shortcuts: it reads, and asks for nothing
}
"""Options of a verb that mean something else than the field of a spec with the same spelling."""


ROOT = Path(hitmiss.__file__).parent


def options(verb: str) -> list[VerbOption]:
    return [p for p in find_verb(verb).params if isinstance(p, VerbOption)]


def spec_options() -> dict[str, list[Option]]:
    found: dict[str, list[Option]] = defaultdict(list)
    for spec in SPECS:
        for field, option in options_of(spec).items():  # type: ignore[arg-type]
            for spelling in option.spellings(field) if option.is_flag else ():
                found[spelling].append(option)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_a_spelling_is_one_option(verb: str) -> None:
    spellings = [s for option in options(verb) for s in (*option.opts, *option.secondary_opts)]
    assert len(spellings) == len({*spellings})


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_spec_declares_no_verb_declares_again(verb: str) -> None:
    declared = spec_options()
    again = {o.spelling for o in options(verb) if o.spelling in declared and o.declared not in declared[o.spelling]}
    assert again == OWN.get(verb, set())


def test_two_declarations_never_say_the_same() -> None:
    said: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, tree in trees(r"\bopt\("):
        for node in ast.walk(tree):
            if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
                name = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
                for call in ast.walk(node.annotation):
                    if (
                        isinstance(call, ast.Call)
                        and getattr(call.func, "id", "") == "opt"
                        and isinstance(call.args[0], ast.Constant)
                    ):
                        said[name, ast.unparse(call.args[0])].append(path.name)
    assert {key: files for key, files in said.items() if len(files) > 1} == {}


def test_every_field_with_an_option_is_in_some_verb() -> None:
    used = {id(option.declared) for verb in VERBS for option in options(verb)}
    unused = {s for s, declared in spec_options().items() if not any(id(one) in used for one in declared)}
    assert unused == set()


def test_options_are_made_in_one_place() -> None:
    # the options before the verb stand in main; the stand-in for a language model is a program of its own
    makers = {"cli/options.py", "cli/main.py", "llm/standin.py"}
    for path, tree in trees(r"\b(add_argument|add_option|click\.Option)\b"):
        calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
        names = {f.attr for f in calls if isinstance(f, ast.Attribute)}
        if str(path.relative_to(ROOT)) not in makers:
            assert not names & {"add_argument", "add_option"}, path
            assert not any(isinstance(f, ast.Attribute) and ast.unparse(f) == "click.Option" for f in calls), path


def test_a_keyword_has_its_option() -> None:
    for spelling, declared in spec_options().items():
        field = next(f for spec in SPECS for f, o in options_of(spec).items() if o is declared[0])  # type: ignore[arg-type]
        assert spelling == option_name(field) or spelling in declared[0].names
