"""Writes src/hitmiss/core/keywords.py from the fields of the specs: `python docs/keywords.py`.

A test keeps both the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

from hitmiss.attacks.attack_spec import AttackSpec
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import Spec, options_of
from hitmiss.detection.detect_spec import DetectSpec

FILE = Path(__file__).parent.parent / "src" / "hitmiss" / "core" / "keywords.py"
HEAD = '''"""Keywords of functions that take the fields of a spec. Written by `python docs/keywords.py`; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict

from hitmiss.core.protocol import Gaps
'''
PATH = "str | PathLike[str] | None"
SEVERAL = {"by": "str | Sequence[str | Sequence[str]]", "gap": "Gaps", "weights": PATH, "labels": PATH, "root": PATH}
"""Fields that a caller may write in more ways than their type says."""
LABELS = ("positive", "negative", "positive_value", "higher")


def keywords() -> str:
    """The whole file."""
    return HEAD + "".join(map(keywords_of, (ReadSpec, Design, DetectSpec, AttackSpec)))


def keywords_of(spec: type[Spec]) -> str:
    """A class with a field for each field of a spec, of the types that a caller may write."""
    name = spec.__name__.removesuffix("Spec") + "Keywords"
    lines = [
        f'\n\nclass {name}(TypedDict, total=False):\n    """The fields of `{spec.__name__}`, each of which may be left out."""\n'
    ]
    hints = get_type_hints(spec, include_extras=True)
    for field, option in options_of(spec).items():  # type: ignore[arg-type]
        if field == "protocol":
            continue  # a parameter of its own
        hint = hints[field]
        kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        text = written(field, kind)
        given = text if spec is not Design or text.endswith("None") or text == "Gaps" else f"{text} | None"
        lines.append(f'    {field}: {given}\n    """{option.help}"""')
    return "\n".join(lines) + "\n"


def written(field: str, kind: object) -> str:
    """The type that a caller may write: one text is one name, a label may be a number."""
    if field in SEVERAL:
        return SEVERAL[field]
    text = str(kind) if get_origin(kind) is not None or not isinstance(kind, type) else kind.__name__
    text = re.sub(r"typing\.|collections\.abc\.", "", text)
    text = re.sub(r"Optional\[(Literal\[[^\]]*\])\]", r"\1 | None", text).replace("'", '"')
    text = text.replace("tuple[str, ...]", "str | Sequence[str]").replace(
        "tuple[float, ...]", "float | Sequence[float]"
    )
    return text.replace("str", "str | bool | float") if field in LABELS else text


if __name__ == "__main__":
    FILE.write_text(keywords(), encoding="utf-8")
