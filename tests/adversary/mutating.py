"""Damage: a file's bytes, lines, cells or JSON values changed at random. Digests can be made anew after it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from hitmiss.core import artifacts

ODD_TEXTS = (
    *("", " ", "nan", "NaN", "inf", "-inf", "1e309", "-0.0", "0x10", "1_000", "1,5", "null", "None", "true", "-"),
    *("=1+1", "\u202e", "\x1b[31m", "\U0001f600" * 3, "a" * 5000, "1" * 400, "bonafide", "spoof", '"', "\\", "'", "\t"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**70, 1.5, -1e308, "", "x", "inf", [], {}, [[]], {"a": 1}, [None], "\u202e", 10**400),
)


def damaged(rng: Random, data: bytes, name: str) -> bytes:
    """The bytes of a file after one to three changes that fit its kind."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if name.endswith(".json") and rng.random() < 0.8:
            data = _json(rng, data)
        elif not name.endswith((".parquet", ".npz")) and rng.random() < 0.7:
            data = _lines(rng, data)
        else:
            data = _bytes(rng, data)
    return data


def _bytes(rng: Random, data: bytes) -> bytes:
    at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2)) if data else (0, 0)
    end = min(end, at + 64)
    return {
        "cut": lambda: data[:at],
        "drop": lambda: data[:at] + data[end:],
        "double": lambda: data[:end] + data[at:end] + data[end:],
        "noise": lambda: data[:at] + rng.randbytes(end - at) + data[end:],
        "flip": lambda: (
            data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if at < len(data) else data
        ),
        "put": lambda: data[:at] + rng.choice((b"\0", b"\r", b"\n", b'"', b"\xff", b"\xef\xbb\xbf")) + data[at:],
    }[rng.choice(("cut", "drop", "double", "noise", "flip", "put"))]()


def _lines(rng: Random, data: bytes) -> bytes:
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    at = rng.randrange(len(lines))
    separator = next((s for s in "\t,; " if s in lines[0]), ",")
    cells = lines[at].split(separator)
    cell = rng.randrange(len(cells))
    match rng.randrange(7):
        case 0:
            lines.pop(at)
        case 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        case 2:
            cells.pop(cell)
        case 3:
            cells.insert(cell, rng.choice(ODD_TEXTS))
        case 4:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
            cells = lines[at].split(separator)
        case 5:
            lines = [line.replace(separator, rng.choice("\t,; |")) for line in lines]
            return "\n".join(lines).encode("utf-8", "surrogateescape")
        case _:
            cells[cell] = rng.choice(ODD_TEXTS)
    if lines and at < len(lines):
        lines[at] = separator.join(cells)
    return rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines).encode("utf-8", "surrogateescape")


def _json(rng: Random, data: bytes) -> bytes:
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(rng, data)
    part, steps = whole, rng.randrange(1, 6)
    for _ in range(steps):
        keys = list(part) if isinstance(part, dict) else list(range(len(part))) if isinstance(part, list) else []
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(part[key], dict | list) and part[key] and rng.random() < 0.8:
            part = part[key]
            continue
        if rng.random() < 0.25:
            del part[key]
        else:
            part[key] = rng.choice(ODD_VALUES)
        break
    if isinstance(whole, dict) and rng.random() < 0.6:  # somebody who knows how makes the digest anew
        for seal in ("digest", "seal"):
            if seal in whole:
                whole = artifacts.sealed(whole, seal)
    try:
        text = json.dumps(whole, indent=1, sort_keys="seal" in whole if isinstance(whole, dict) else False)
    except (ValueError, TypeError):
        return data
    return text.encode() + b"\n"


def degenerate(rng: Random, path: Path) -> None:
    """Trials in a few slices, each with something odd about its classes, its scores or its size."""
    kinds = ("usual", "one class", "one trial", "one score", "two scores", "infinite", "huge", "tiny", "apart")
    lines = ["item,label,score,codec,attack,speaker,confidence,decision"]
    for codec in "abcd"[: rng.randrange(1, 5)]:
        kind = rng.choice(kinds)
        for k in range(1 if kind == "one trial" else rng.choice((2, 3, 9, 40))):
            positive = rng.random() < (1.0 if kind == "one class" else 0.4)
            score = {
                "one score": lambda: 0.5,
                "two scores": lambda: rng.choice((0.25, 0.75)),
                "infinite": lambda: rng.choice((float("inf"), float("-inf"), 0.5)),
                "huge": lambda: rng.choice((1e300, -1e300, 1e9)),
                "tiny": lambda: rng.choice((5e-324, 1e-300, 0.0, -0.0)),
                "apart": lambda p=positive: 0.9 if p else 0.1,
            }.get(kind, rng.random)()
            cells = (f"{codec}{k}", ("spoof", "bonafide")[positive], score, codec, f"A{k % 2}", f"s{k % 3}")
            said = rng.choice(("spoof", "bonafide", "bonafide", "uncertain"))
            lines.append(",".join(map(str, (*cells, round(rng.random(), 3), said))))
    path.write_text("\n".join(lines) + "\n")


def damage(rng: Random, folder: Path, names: tuple[str, ...]) -> str:
    """Damage one of the files of a folder in place; its name."""
    name = rng.choice(names)
    path = folder / name
    path.write_bytes(damaged(rng, path.read_bytes(), name))
    return name
