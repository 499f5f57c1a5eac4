"""Find objects in the text of an answer: JSON, and what models write in its place (single quotes, trailing commas)."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable, Mapping
from typing import Final

MOST_TRIES: Final = 20
"""After so many braces that begin no object the rest of an answer is taken for text."""
NAMED: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}


class Pairs(list[tuple[str, object]]):
    """An object as its names and values in order, so that a name that occurs twice is seen."""


def objects_and_rest(text: str) -> tuple[list[object], str]:
    """Return the outermost objects of a text, from left to right, and the text without them."""
    decoder = json.JSONDecoder(object_pairs_hook=Pairs, strict=False)
    objects: list[object] = []
    kept, at, tries = [], 0, 0
    while (start := text.find("{", at)) >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except RecursionError:
            break  # where an object nested this deeply ends is unknown, and what it holds is not outermost
        except ValueError:
            if (tries := tries + 1) > MOST_TRIES:
                break
            found, end = _loose(text, start)
        kept.append(text[at : start if found is not None else end])
        if found is not None:
            objects.append(found)
        at = end
    return objects, "".join([*kept, text[at:]])


def _loose(text: str, start: int) -> tuple[object, int]:
    """Return an object that is written with single quotes or trailing commas, and its end; None if it is none."""
    end = _end_of_object(text, start)
    if end is None:
        return None, start + 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return _literal(ast.parse(text[start:end], mode="eval").body), end
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, start + 1


def _end_of_object(text: str, start: int) -> int | None:
    """Return where the object that begins here ends; braces inside quotes do not count."""
    depth, quote, at = 0, "", start
    while at < len(text):
        character = text[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return at + 1
        at += 1
    return None


def _literal(node: ast.expr) -> object:
    """Return the value of a literal; objects as pairs."""
    if isinstance(node, ast.Dict):
        names = [_literal(key) for key in node.keys if key is not None]
        if len(names) != len(node.values) or not all(isinstance(name, str) for name in names):
            raise ValueError("an object names its values by texts")
        return Pairs((str(name), _literal(value)) for name, value in zip(names, node.values, strict=True))
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(part) for part in node.elts]
    if isinstance(node, ast.Name) and node.id in NAMED:
        return NAMED[node.id]
    found: object = ast.literal_eval(node)
    return _joined(found) if isinstance(found, str) else found


def _joined(text: str) -> str:
    """Return a text with pairs of surrogates, as JSON escapes them, as one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unquoted(text: str) -> str:
    """Return what a whole answer that is one JSON text holds; any other answer as it is."""
    try:
        found = json.loads(text, strict=False) if text.lstrip().startswith('"') else text
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str) else text


def pairs_of(said: object) -> object:
    """Return mappings of Python as objects."""
    if isinstance(said, Mapping):
        return Pairs((str(name), pairs_of(value)) for name, value in said.items())
    if isinstance(said, Iterable) and not isinstance(said, str | bytes):
        return [pairs_of(part) for part in said]
    return said
