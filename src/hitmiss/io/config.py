"""Read YAML configuration safely: YAML 1.2 (`no` is a text), no tags, no aliases, no repeated key, no huge file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts
from hitmiss.core.convert import InvalidField, declare, fit
from hitmiss.core.errors import UsageError, nearest

MOST_BYTES: Final = 2**20
DEEPEST: Final = 20


@dataclass(frozen=True)
class DataSection:
    """The keys read from `data`; its other keys concern training and are ignored."""

    languages: list[str] | None = None


@dataclass(frozen=True)
class EvaluationSection:
    """The section `evaluation`; an unknown key is an error, because a mistyped key would silently change numbers."""

    output_dir: str | None = None
    metrics: list[str] | None = None
    default_threshold: float | None = None
    optimize_threshold: bool | None = None
    threshold_metric: str | None = None


@dataclass(frozen=True)
class ToxicityConfig:
    """The parts of a project's configuration used for scoring; sections about models and training are ignored."""

    data: DataSection = DataSection()
    evaluation: EvaluationSection = EvaluationSection()


def read_config(path: str | Path) -> ToxicityConfig:
    """Read the configuration in a YAML file; an error says in one sentence what is wrong."""
    content = read_yaml(path)
    name = Path(path).name
    known = ("data", "evaluation")
    for key in content:
        near = nearest(key, known)
        if key not in known and near is not None and len(key) > 3:
            raise UsageError.of("bad-configuration/section", name=name, key=key, near=near)
    try:
        sections = {key: fit(dict[str, object], content[key], (key,)) for key in known if content.get(key) is not None}
        data = declare(DataSection, sections.get("data", {}), ignore=True, where=("data",))
        found = declare(EvaluationSection, sections.get("evaluation", {}), where=("evaluation",))
    except InvalidField as fault:
        raise UsageError.of("bad-protocol", name=name, fault=_fault_text(fault)) from None
    default = found.default_threshold
    if default is not None and not 0.0 <= default <= 1.0:
        what = "must be greater than or equal to 0 and less than or equal to 1"
        raise UsageError.of("bad-configuration/threshold", name=name, what=what, default=default)
    return ToxicityConfig(data, found)


def _fault_text(fault: InvalidField) -> str:
    where, known = ".".join(fault.where), EvaluationSection.__dataclass_fields__
    if fault.is_unknown:
        near = nearest(fault.where[-1], known)
        hint = f"; did you mean {near!r}?" if near else "."
        return f"unknown key {where}{hint} Known: {', '.join(known)}"
    if fault.where == ("data", "languages"):
        return f"{where}: it must be a list, as [en, es] (found {fault.value!r})"
    if fault.where[:2] == ("data", "languages"):
        return f"{where}: languages are texts; write them in quotes (found {fault.value!r})"
    return f"{fault} (found {fault.value!r})"


def read_yaml(path: str | Path) -> dict[str, object]:
    """Read a YAML file as plain mappings, lists, texts and numbers."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    source = Path(path)
    if not source.is_file():
        raise UsageError.of("missing-file", what="configuration file", file=path)
    if source.stat().st_size > MOST_BYTES:
        raise UsageError.of("bad-configuration/large", source_name=source.name, MOST_BYTES=MOST_BYTES)
    try:
        artifacts.note_input(source)
        text = source.read_text(encoding="utf-8-sig")
        _refuse_aliases(text, source.name)
        content = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError.of("not-a-file", file=source.name, what="YAML", error=_one_line(error)) from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UsageError.of("bad-configuration", source_name=source.name, name=type(content).__name__)
    return content


def _refuse_aliases(text: str, name: str) -> None:
    """Check the parser events before anything is built: aliases can expand to more than the memory holds."""
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent):
            raise UsageError.of(
                "bad-configuration/alias", name=name, line=event.start_mark.line + 1, anchor=event.anchor
            )
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise UsageError.of("bad-configuration/nested", name=name, DEEPEST=DEEPEST)


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return where + str(getattr(error, "problem", None) or error).splitlines()[0]
