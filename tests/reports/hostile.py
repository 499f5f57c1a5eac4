"""Names that try to be more than names, and trials full of them."""

from __future__ import annotations

import numpy as np

from hitmiss.core.header import Header
from hitmiss.core.trials import Trials

HOSTILE = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    '"><img src=x onerror="window.pwned=3">',
    "<svg onload=window.pwned=4>",
    "<b>bold</b><a href='javascript:window.pwned=5'>x</a>",
    "' onmouseover='window.pwned=6",
    "{{ 7*7 }}{% raw %}",
    "&lt;script&gt;window.pwned=7&lt;/script&gt;",
    "<!--<script>window.pwned=8",
    "\x1b[31mred\x1b[0m\x07",
    "evil\u202etxt.exe\u2066",
    "line\nbreak\rreturn\ttab\x00nul",
    "]]><style>body{display:none}</style>",
    "https://example.org/beacon?x=1",
    "@import url(//example.org/x.css);",
    "$\\frac{1}{0}$",
    "=cmd|' /C calc'!A0",
    "`code` **md** |pipe|",
    "\\input{/etc/passwd} % & # _ ^ ~",
)


def hostile_trials(n: int = 1200, kind: str = "llr") -> Trials:
    """Trials whose ids, classes, slices and texts are hostile."""
    rng = np.random.default_rng(7)
    label = (rng.random(n) < 0.4).astype(int)
    words = np.array(HOSTILE, dtype=object)
    item = [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(n)]
    header = Header(HOSTILE[0], HOSTILE[2], kind)  # type: ignore[arg-type]
    return Trials.of(
        label,
        rng.normal(size=n) * 2 + 3 * label - 1.5,
        item=item,
        decision=rng.integers(0, 2, n),
        confidence=rng.random(n),
        header=header,
        **{
            "<i>codec</i>": words[rng.integers(0, len(words), n)],
            "codec": words[rng.integers(0, 6, n)],
            "codec_q": words[rng.integers(0, 4, n)],
            "text": words[rng.integers(0, len(words), n)],
        },
    )
