"""The files of one run, `{run_tag}_{language}.csv`, are found by their names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hitmiss.core.errors import DataError, Fault, UsageError
from hitmiss.core.finding import Finding, Remark
from hitmiss.core.text import quoted

SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet")
SHOWN: Final = 8
OWN_OUTPUTS: Final = re.compile(r"metrics|results|errors_.+")
"""The files that hitmiss itself writes beside predictions, named after the run tag."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TWO_LETTERS: Final = _words(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg "
    "ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn "
    "no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta "
    "te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
"""ISO 639-1."""
NO_LANGUAGES: Final = _words("all avg dev err log max min new old out raw run set sum tmp val")
"""Three-letter words that are common in file names; as languages they must be given explicitly."""
TAG: Final = re.compile(r"([a-z]{2,3})((?:-[A-Za-z0-9]{2,8}|_[A-Z]{2}|_[0-9]{3}|_[A-Z][a-z]{3})*)")
PLAIN_NAME: Final = re.compile(r"[^/\\\0]+")


def is_language_tag(text: str) -> bool:
    """Return whether a text has the shape of a language tag: a language, optionally with a script and a region.

    >>> [is_language_tag(t) for t in ("en", "pt-BR", "zh_Hant", "fil", "metrics", "errors_en", "xl_en", "val", "v2")]
    [True, True, True, True, False, False, False, False, False]
    """
    match = TAG.fullmatch(text)
    if match is None:
        return False
    language = match[1]
    return language in TWO_LETTERS if len(language) == 2 else language not in NO_LANGUAGES


def one_spelling(language: str) -> str:
    """Return the spelling of a language used for comparison: EN, en and En are equal, and so are pt-BR and pt_BR.

    >>> one_spelling("pt_BR") == one_spelling("PT-br")
    True
    """
    return language.strip().casefold().replace("_", "-")


def without_own_outputs(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split paths into prediction files and files that hitmiss wrote: a pattern like `baseline_*.csv` matches both.

    >>> without_own_outputs(["p/base_en.csv", "p/base_metrics.csv", "p/base_errors_en.csv"])
    (['p/base_en.csv'], ['p/base_metrics.csv', 'p/base_errors_en.csv'])
    """
    is_own = {path: re.search(r"_(metrics|results|errors_[^_].*)$", stem_of(path)) is not None for path in paths}
    return [p for p in paths if not is_own[p]], [p for p in paths if is_own[p]]


def files_of(given: Sequence[str]) -> list[str]:
    """Return the files that the arguments name; `folder:run_tag` means all files of that run."""
    found: list[str] = []
    for path in given:
        folder, colon, tag = path.rpartition(":")
        if Path(path).is_dir():
            raise UsageError.of("is-folder/run", path=path)
        is_run = bool(colon) and not Path(path).exists() and Path(folder).is_dir()
        found += [str(file) for file in find_run(folder, tag)[0].values()] if is_run else [path]
    return found


def language_of(path: str | Path) -> str | None:
    """Return the language at the end of a file name.

    It follows `_`; a two-letter language may also follow a dot, or be the whole name.

    >>> language_of("val/baseline_en.csv"), language_of("run_pt_BR.csv"), language_of("all.parquet")
    ('en', 'pt_BR', None)
    >>> language_of("en.csv"), language_of("preds.en.csv"), language_of("preds.bin.csv")
    ('en', 'en', None)
    """
    stem = one_form(stem_of(path))
    parts = stem.split("_")
    for count in (2, 1):
        tag = "_".join(parts[-count:])
        if len(parts) > count and is_language_tag(tag):
            return tag
    last = stem.rpartition(".")[2]
    return last if re.split("[-_]", last)[0] in TWO_LETTERS and is_language_tag(last) else None


def one_form(name: str) -> str:
    """Return the form of a name used for comparison: accents may be decomposed (NFD, as on macOS) or not (NFC)."""
    return unicodedata.normalize("NFC", name)


def stem_of(path: str | Path) -> str:
    """Return a file's name without the suffix of its format."""
    name = Path(path).name
    return name.removesuffix(next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), ""))


def find_run(
    folder: str | Path, run_tag: str, languages: Sequence[str] | None = None, *, skip: bool = False
) -> tuple[dict[str, Path], list[str]]:
    """Return the file of each language, in the order asked for, and the notes to report about them.

    Without `languages`, the languages are taken from the file names. A requested language without a file is an error
    unless `skip` is set; it is always an error when no requested language has a file.
    """
    directory = Path(folder)
    if not directory.is_dir():
        raise DataError.of("no-folder/predictions", folder=folder)
    if not PLAIN_NAME.fullmatch(run_tag):
        raise UsageError.of("bad-run-tag", run_tag=run_tag)
    run_tag, languages = one_form(run_tag), [one_form(language) for language in languages or ()]
    found = _named(directory, run_tag)
    if not languages:
        return _inferred(found, directory, run_tag)
    twice = [language for language in dict.fromkeys(languages) if languages.count(language) > 1]
    if twice:
        raise UsageError.of("repeated-language/asked", twice=twice[0])
    missing = [language for language in languages if language not in found]
    if missing and (not skip or len(missing) == len(languages)):
        raise _absent(missing, found, directory, run_tag)
    there = [language for language in languages if language in found]
    notes = [
        f"no file for {', '.join(missing)}: left out, so averages are over {len(there)} of {len(languages)} languages"
    ]
    return {language: _only(found[language]) for language in there}, notes if missing else []


def _named(directory: Path, run_tag: str) -> dict[str, list[Path]]:
    """Map the part of each file name after the run tag to the files that have it."""
    found: dict[str, list[Path]] = {}
    for path in sorted(directory.iterdir()):
        name = one_form(path.name)
        suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), None)
        if suffix and name.startswith(f"{run_tag}_") and path.is_file():
            found.setdefault(name[len(run_tag) + 1 : -len(suffix)], []).append(path)
    return found


def _inferred(found: dict[str, list[Path]], directory: Path, run_tag: str) -> tuple[dict[str, Path], list[str]]:
    languages = [name for name in found if is_language_tag(name)]
    if not languages:
        raise DataError.of(
            "no-language-files", run_tag=run_tag, directory_name=directory.name, found=_there(found, directory)
        )
    notes: list[str] = [Remark.of("languages-inferred", languages=languages)]
    others = [
        p.name for name in found if name not in languages and not OWN_OUTPUTS.fullmatch(name) for p in found[name]
    ]
    if others:
        notes.append(Remark.of("no-language-seen", files=others))
    return {language: _only(found[language]) for language in languages}, notes


def _absent(missing: list[str], found: dict[str, list[Path]], directory: Path, run_tag: str) -> DataError:
    faults = [Fault("missing-language", "there is no such file", file=f"{run_tag}_{m}.csv") for m in missing]
    small = {name.casefold(): name for name in found}
    meant = [small[m.casefold()] for m in missing if m.casefold() in small]
    values: dict[str, Any] = {
        "run_tag": run_tag,
        "missing": tuple(missing),
        "folder": directory.name,
        "there": _there(found, directory),
    }
    hint = Finding("languages-meant", values={"meant": tuple(meant)}) if meant else None
    return DataError.of("missing-language", **values, hint=hint).with_faults(faults)


def _there(found: dict[str, list[Path]], directory: Path) -> str:
    """Describe what was found instead: the files of the run, or else the files of the folder."""
    own = [p.name for name, paths in found.items() if not OWN_OUTPUTS.fullmatch(name) for p in paths]
    if own:
        return f"of this run it has {_listed(own)}"
    others = sorted(p.name for p in directory.iterdir() if p.name.endswith(SUFFIXES) and p.is_file())
    return f"it has {_listed(others)}" if others else "it has no predictions at all"


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest


def _only(paths: list[Path]) -> Path:
    if len(paths) > 1:
        raise DataError.of("repeated-language/files", paths=" and ".join(quoted(p.name) for p in paths))
    return paths[0]
