"""Findings become sentences here, last and once for each output; nothing reads them back."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter
from typing import Final

from hitmiss.core.finding import Amount, Decimals, Finding, Option, Place, PValue, Severity, Value
from hitmiss.core.results import Estimate
from hitmiss.core.tex import tex
from hitmiss.core.text import quoted
from hitmiss.findings import catalogue
from hitmiss.findings.options import as_keywords, mentioned, on_command_line, spelled
from hitmiss.findings.wording import PER_CENT, explain, figure, interval, is_share, p_text, places

JOINS: Final = {";": "; ", "or": " or ", "and": " and ", "lines": "\n", "together": ""}
"""What stands between several values, by the format in the template."""
ALSO: Final = "also"
"""The format of further findings, of which a sentence says only what they are and how often."""
BESIDE: Final = "beside"
"""The format of several options that are given together."""
_INSIDE: Final = re.compile(r"<(\w+)>")
"""A value inside an option of a template."""


def _same(text: str) -> str:
    return text


@dataclass(frozen=True)
class Surface:
    """An output: how it writes plain text, and options."""

    name: str
    escape: Callable[[str], str] = _same
    options: Callable[[Sequence[Option]], str] = on_command_line
    code: tuple[str, str] = ("", "")
    """What stands before and after a piece of code."""

    def write_options(self, options: Sequence[Option]) -> str:
        """Write options that stand together."""
        return f"{self.code[0]}{self.escape(self.options(options))}{self.code[1]}"


TERMINAL: Final = Surface("terminal")
PYTHON: Final = Surface("python", options=as_keywords)
HTML: Final = Surface("html", html.escape, code=("<code>", "</code>"))
LATEX: Final = Surface("latex", tex, code=(r"\texttt{", "}"))
JSON: Final = Surface("json")
"""A file is read by command lines and by programs: its texts are those of the terminal."""


def severity_of(f: Finding) -> Severity:
    """Return how grave a finding is."""
    return catalogue.entry_of(f.code).severity


def text(f: Finding, surface: Surface = TERMINAL) -> str:
    """Return the sentence of a finding; one that is about one of several runs begins with its name."""
    if f.written is not None:
        return surface.escape(f.written)
    entry = catalogue.entry_of(f.code)
    template = entry.sentence
    if f.subject.places:
        fix = f"; {filled(entry.fix, f, surface)}" if entry.fix else ""
        return f"{surface.escape(_first_place(f.subject.places))}{counted(f, surface)}{fix}"
    made = filled(template, f, surface)
    named = f.values.get("who")
    return f"{surface.escape(str(named))}: {made}" if named and "{who}" not in template else made


IDS_SHOWN: Final = 5


def counted(f: Finding, surface: Surface = TERMINAL) -> str:
    """Return what is wrong at some places, how often, and the first ids: neither the first place nor what to do."""
    ids = list(dict.fromkeys(p.item for p in f.subject.places if p.item is not None))
    dots = ", …" if len(ids) > IDS_SHOWN else ""
    named = f" (id{'s' if len(ids) > 1 else ''} {', '.join(map(quoted, ids[:IDS_SHOWN]))}{dots})" if ids else ""
    return filled(catalogue.entry_of(f.code).text, f, surface) + surface.escape(named)


def _first_place(places: Sequence[Place]) -> str:
    """Return the file and row of the first place, with control characters of the file's name escaped."""
    file, row = places[0].file or "", f"row {places[0].row}" if places[0].row is not None else ""
    place = ", ".join(filter(None, (file if file.isprintable() else repr(file)[1:-1], row)))
    return f"{place}: " if place else ""


def brief(f: Finding) -> str:
    """Return the short words of a finding, where it has some; of one that was read from a file, its sentence."""
    words = catalogue.entry_of(f.code).short
    return filled(words, f) if words and f.written is None else text(f)


def filled(template: str, f: Finding, surface: Surface = TERMINAL, where: str | None = None) -> str:
    """Return a template of the catalogue with the values of a finding; `where` may name several slices at once."""
    title = explain(f.subject.metric).title if f.subject.metric else ""
    about = {
        "who": f.subject.run,
        "where": where if where is not None else f.subject.where,
        "title": title,
        "Title": title.lower(),
        "code": f.code,
    }
    return write(template, {**about, **f.values}, surface)


@dataclass(frozen=True)
class Part:
    """A piece of a template: text, and after it a value, or an option, or nothing."""

    literal: str
    field: str = ""
    format: str = ""
    quoted: bool = False


@cache
def parts_of(template: str) -> tuple[Part, ...]:
    """Cut a template into its parts."""
    found = []
    for literal, name, spec, conversion in Formatter().parse(template):
        found.append(Part(literal, name or "", spec or "", conversion == "r"))
    return tuple(found)


def write(template: str, values: Mapping[str, Value], surface: Surface = TERMINAL) -> str:
    """Fill a template for an output.

    >>> write("say {--higher spoof} {--dedupe}; {n:rows}", {"n": 1}), write("say {--unit <unit>}", {"unit": "spk"}, PYTHON)
    ('say --higher spoof --dedupe; 1 row', "say unit='spk'")
    """
    made: list[str] = []
    pending: list[Option] = []
    for part in parts_of(template):
        if pending and not (part.literal == " " and _is_option(part, values)):
            made.append(surface.write_options(pending))
            pending = []
        if not pending:
            made.append(surface.escape(part.literal))
        if _is_option(part, values):
            pending.append(_option(part, values))
        elif part.field:
            made.append(_value(_with_values(part, values), values[part.field], surface))
    return "".join([*made, surface.write_options(pending)] if pending else made)


def _with_values(part: Part, values: Mapping[str, Value]) -> Part:
    """Fill values into a noun: `{n:missing <column>s}`."""
    if "<" not in part.format:
        return part
    return replace(part, format=_INSIDE.sub(lambda found: str(values[found[1]]), part.format))


def _is_option(part: Part, values: Mapping[str, Value]) -> bool:
    return part.field.startswith("-") or isinstance(values.get(part.field), Option)


def _option(part: Part, values: Mapping[str, Value]) -> Option:
    given = values.get(part.field)
    if isinstance(given, Option):
        return given
    words = f"{part.field}:{part.format}" if part.format else part.field
    if words.endswith("?"):
        return mentioned(words.removesuffix("?"))
    return spelled(_INSIDE.sub(lambda found: str(values[found[1]]), words))


def _value(part: Part, value: Value, surface: Surface) -> str:
    if value is None and not part.quoted:
        return ""
    if isinstance(value, Finding):
        return text(value, surface)
    if part.format == BESIDE and isinstance(value, Iterable):
        return surface.write_options([one for one in value if isinstance(one, Option)])
    if part.format == ALSO and isinstance(value, Iterable):
        return "".join(f"; also {counted(one, surface)}" for one in value if isinstance(one, Finding))
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return JOINS.get(part.format, ", ").join(_listed(value, part.quoted, surface))
    if part.quoted:
        return surface.escape(format(repr(value), part.format))
    if not part.format:
        return surface.escape(said(value))
    if isinstance(value, int | float) and (part.format[:1] in ",.+" or len(part.format) <= 2):
        return surface.escape(format(value, part.format))
    if not isinstance(value, int):
        return surface.escape(said(value))
    noun = part.format.removesuffix("s") if value == 1 else part.format
    return surface.escape(f"{value:,} {noun}")


def _listed(values: Iterable[object], quoted: bool, surface: Surface) -> Iterator[str]:
    for value in values:
        if isinstance(value, Finding):
            yield text(value, surface)
        elif isinstance(value, Option):
            yield surface.write_options([value])
        else:
            yield surface.escape(repr(value) if quoted else str(value))


def said(value: object) -> str:
    """Format a value for a sentence.

    >>> said(1234), said(PValue(1e-9, 499)), said(PValue(0.03))
    ('1234', '< 0.002 (499 draws)', '0.0300')
    """
    if isinstance(value, PValue):
        return p_text(value.p, value.draws)
    if isinstance(value, Amount):
        return _amount(value)
    if isinstance(value, Decimals):
        return figure(value.value, value.places)
    return str(value)


def _amount(a: Amount) -> str:
    """Format a number with its interval; differences of shares in percentage points, because per cent is ambiguous."""
    scale = 100.0 if is_share(a.metric) else 1.0
    if a.plain:
        return f"{scale * a.value:.3g}{PER_CENT if scale != 1.0 else ''}"
    own = Estimate(a.metric, a.value, a.low, a.high)
    digits = places([own if a.like is None else Estimate(a.metric, a.value, *a.like)], scale)
    number, ends = figure(a.value, digits, scale), interval(own, digits, scale)
    if not a.signed and not a.apart:
        return f"{number}{PER_CENT if scale != 1.0 else ''} {ends}".strip()
    unit = " percentage points" if scale != 1.0 else ""
    return f"{'+' if a.signed and a.value > 0 else ''}{number}{unit} {ends}".strip()
