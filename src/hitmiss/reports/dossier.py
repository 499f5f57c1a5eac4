"""What was tested, as the run recorded it: detector, weights, codecs, attacks, models, prompts, settings, dates.

A report is passed on to others, so only the names of files are kept, not their folders, and no network addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hitmiss.runs.manifest import MANIFEST

FACTS: Final = (
    "n_scored",
    "n_failed",
    "pooling",
    "invariance",
    "layout",
    "positive",
    "negative",
    "score_kind",
    "notes",
)
"""Facts found by a run that belong to what was tested."""
LONGEST_FACT: Final = 240
ADDRESS: Final = re.compile(r"\w[\w+.-]*://[^\s\"'|;,]+")
MODEL: Final = re.compile(r"[A-Za-z][\w-]*/[A-Za-z][\w.:-]*")
"""Providers' names of models, which look like a folder: `openai/gpt-5`."""
FOLDERS: Final = re.compile(r"(?:[A-Za-z]:)?[^\s\"'|;,=(]*[/\\](?=[^/\\\s]*)")
MOST_FACTS: Final = 60
Dossier = tuple[tuple[str, str], ...]


def dossier_of(path: str | Path) -> Dossier:
    """Return the facts about a run folder, or a file inside one; empty if there is no readable manifest."""
    here = Path(path)
    file = next((p / MANIFEST for p in (here, here.parent) if (p / MANIFEST).is_file()), None)
    if file is None:
        return ()
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return ()
    return tuple(_rows(data))[:MOST_FACTS] if isinstance(data, Mapping) else ()


def _rows(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name in ("kind", "started", "ended", "state", "hitmiss", "n_items"):
        if data.get(name) is not None:
            yield name.replace("n_items", "items"), discreet(str(data[name]))
    config = data.get("config")
    if isinstance(config, Mapping):
        yield from _flat(config)
    facts = data.get("facts")
    if isinstance(facts, Mapping):
        yield from _flat({name: facts[name] for name in FACTS if facts.get(name) not in (None, [], {})})


def _flat(config: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """List settings one per line, inner ones with their path; settings that were not given are left out.

    >>> list(_flat({"detector": {"name": "m.onnx", "layers": []}, "attacks": ["pgd 1", "noise 1"]}))
    [('detector name', 'm.onnx'), ('attacks', 'pgd 1; noise 1')]
    """
    for key, value in config.items():
        is_model = prefix == "models" and MODEL.fullmatch(key) is not None
        name = f"{prefix} {key if is_model else discreet(key)}".strip()
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        elif isinstance(value, list) and value:
            text = "; ".join(" ".join(map(str, v)) if isinstance(v, list) else str(v) for v in value)
            shown = discreet(text)
            yield name, shown if len(shown) <= LONGEST_FACT else f"{shown[:LONGEST_FACT]}… ({len(value)} in all)"
        elif value not in (None, [], "", {}):
            yield name, discreet(str(value))[:LONGEST_FACT]


def discreet(text: str) -> str:
    r"""Return the text without folders and addresses.

    >>> discreet("/data/me/model.py:detector"), discreet("http://10.0.0.1:80/v1"), discreet("noise(path=../data/n.wav) 3")
    ('model.py:detector', '(an address)', 'noise(path=n.wav) 3')
    >>> discreet("C:\\Users\\me\\m.onnx"), discreet("openai/gpt-5")
    ('m.onnx', 'gpt-5')
    """
    return FOLDERS.sub("", ADDRESS.sub("(an address)", text))
