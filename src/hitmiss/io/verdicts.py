"""What a three-way verdict says: fake, real, uncertain, or nothing that can be understood."""

from __future__ import annotations

import re
from typing import Final

from hitmiss.io.words import FAMILIES

UNCERTAIN: Final = "uncertain"
WORDS: Final = {
    **dict.fromkeys(FAMILIES[0].negative, "fake"),
    **dict.fromkeys(FAMILIES[0].positive, "real"),
    **dict.fromkeys(("ai-generated", "ai generated", "ai", "synthetic", "manipulated", "tampered", "tamper"), "fake"),
    **dict.fromkeys(("authentic", "natural"), "real"),
    **dict.fromkeys((UNCERTAIN, "inconclusive", "unknown", "undetermined", "unsure", "not sure", "abstain"), UNCERTAIN),
    **dict.fromkeys(("cannot determine", "cant determine", "impossible to tell"), UNCERTAIN),
}
"""The words that detectors use, as the triage document's own runner understands them."""


def verdict(text: str | None) -> str | None:
    """`fake`, `real` or `uncertain`; None where the text is empty or says none of them.

    >>> verdict("AI-Generated."), verdict(" authentic"), verdict("can't determine"), verdict("purple"), verdict("")
    ('fake', 'real', 'uncertain', None, None)
    """
    plain = re.sub(r"[^a-z0-9\-\s]", "", re.sub(r"[\s_]+", " ", (text or "").strip().lower()))
    return WORDS.get(" ".join(plain.split()))
