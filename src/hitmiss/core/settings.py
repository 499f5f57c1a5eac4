"""The file `hitmiss.toml`: what a folder's files mean and what is asked of them, stated once.

    protocol = "asvspoof5"              # as --protocol
    key = "key.tsv"                     # as --key; relative to the file
    [read]                              # the fields of `ReadSpec`
    positive = "fake"
    columns = {score = "p_fake"}
    [ask]                               # fields of `Design`
    metrics = ["eer"]
    unit = ["speaker"]

It is one layer: it overrides a protocol, and options of a command or keywords of a function override it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from hitmiss.core.design import Design, Taken
from hitmiss.core.errors import HitmissError, UnknownName, UsageError
from hitmiss.core.finding import Finding
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import Layer, make, options_of

NAME: Final = "hitmiss.toml"
"""The file that is taken from the working folder by itself."""
OFF: Final = "none"
"""What is said instead of a file, to take none."""
TOP: Final = ("protocol", "key", "read", "ask")
ASKED: Final = tuple(name for name in options_of(Design) if name != "protocol")
"""Fields of `Design` that a settings file may state: those with an option of their own."""

OF_MEANING: Final = (
    *("missing-column", "ambiguous-column", "unknown-column", "unknown-label", "score-direction", "unread-option"),
    *("key-of-counts", "key-not-a-table", "no-common-id", "only-in-key", "only-in-scores", "label-conflict"),
)
"""Errors that a value of a settings file may cause without being named in them."""


@dataclass(frozen=True)
class Settings:
    """What a settings file states: a protocol, a key, read options and fields of a design."""

    path: str = ""
    protocol: str | None = None
    key: str | None = None
    read: Mapping[str, object] = field(default_factory=dict)
    ask: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return Path(self.path).name

    def layer(self, table: str, allowed: Collection[str] | None = None) -> Layer:
        """Return the values of the table `read` or `ask`, or those that are allowed, as a layer."""
        values: Mapping[str, object] = self.ask if table == "ask" else self.read
        own = {name: value for name, value in values.items() if allowed is None or name in allowed}
        return Layer(self.name, own, f"{self.name}, [{table}]")

    def reading(self, said: Mapping[str, object]) -> tuple[ReadSpec, Taken]:
        """Return the read options of a caller over those of the file, and what was taken from the file."""
        made, origins = make(ReadSpec, self.layer("read"), Layer("caller", said))
        alone = make(ReadSpec, self.layer("read"))[0]
        taken: dict[str, str] = {}
        for name in (name for name, origin in origins.items() if origin == self.name):
            field_, _, key = name.partition(".")
            ours, theirs = getattr(alone, field_), getattr(made, field_)
            if key:
                taken[name] = value_text(ours[key])
            elif ours == theirs:
                taken[name] = value_text(ours)
        return made, Taken(self.name, taken)

    def taken(self, **values: str | None) -> Taken:
        """Return what was taken: values of the file by name."""
        return Taken(self.name, {name: value for name, value in values.items() if value is not None})


def load(path: str | Path) -> Settings:
    """Read a settings file; an unknown key or an unfit value is refused with its place."""
    import tomllib  # needed only where there is such a file

    from hitmiss.core import artifacts

    file = Path(path)
    try:
        artifacts.note_input(file)
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError.of("missing-settings", path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError.of("not-a-file", file=file.name, what="TOML", error=error) from None
    for name in data:
        if name not in TOP and (table := _table_of(name)):
            raise UsageError.of("bad-settings/table", file_name=file.name, name=name, table=table)
        if name not in TOP:
            raise _placed(UnknownName("key", name, (*TOP, *_fields())), file.name, "")
    for name in ("protocol", "key"):
        if not isinstance(data.get(name, ""), str):
            raise UsageError.of("bad-settings/text", file_name=file.name, name=name, data=data[name])
    read, ask = (_table(data, name, file.name) for name in ("read", "ask"))
    for name in ask:
        if name not in ASKED:
            raise _placed(UnknownName("key", name, ASKED), file.name, "ask")
    key = data.get("key")
    made = Settings(str(path), data.get("protocol"), None if key is None else str(file.parent / key), read, ask)
    make(ReadSpec, made.layer("read"))
    make(Design, made.layer("ask", [name for name in ask if name != "metrics"]))  # metrics of plug-ins may come later
    return made


def find(named: str | Path | None = None) -> Settings | None:
    """Return the settings that apply: those of a named file, or of the working folder; None if there are none.

    >>> find("none") is None
    True
    """
    if named is not None:
        return None if str(named) == OFF else load(named)
    return load(NAME) if Path(NAME).is_file() else None


def blamed(error: HitmissError, taken: Taken) -> HitmissError:
    """Return an error with the values of the settings file that may be its cause: those it is about, or all."""
    named = {getattr(error, "name", None)}
    named |= {word for fault in getattr(error, "faults", ()) for word in (fault.column, fault.value)}
    own = {name: value for name, value in taken.values.items() if {value, *value.split(",")} & named}
    if not own and (error.code not in OF_MEANING or not taken.values):
        return error
    said = Taken(taken.file, own or taken.values)
    error.finding = Finding("settings-blamed", values={"what": error.found, "said": str(said)})
    return error


def _fields() -> list[str]:
    return [f.name for f in fields(ReadSpec)]


def _table_of(name: str) -> str:
    """Return the table that a key belongs into, if it stands above the tables."""
    return "read" if name in _fields() else "ask" if name in ASKED else ""


def _table(data: Mapping[str, object], name: str, file: str) -> dict[str, object]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise UsageError.of("bad-settings", file=file, name=name, found=found)
    return found


def _placed(error: UsageError, file: str, table: str) -> UsageError:
    """Return an error with the file and the table that it is about."""
    where = f"{file}, [{table}]" if table else file
    return UsageError.of("bad-settings/placed", place=where, what=error.found)


def value_text(value: object) -> str:
    """Return a value as a headline shows it.

    >>> value_text(("speaker", "attack")), value_text([["a", "b"], "c"]), value_text(True), value_text(0.5)
    ('speaker,attack', 'a,b,c', 'true', '0.5')
    """
    if isinstance(value, list | tuple):
        return ",".join(map(value_text, value))
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{value_text(inner)}" for name, inner in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)
