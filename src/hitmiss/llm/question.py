"""The question that models are asked: its two classes, and the word for "it cannot be decided".

Inside, the classes are called fake (the positive one) and real, as in the triage evaluation document; the words of the
question are in the dataset, the prompts, the answers and the result rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.verdicts import UNCERTAIN, VerdictWords, folded

FAKE, REAL = "fake", "real"


@dataclass(frozen=True)
class Question:
    """Two classes and an abstention.

    >>> asked = Question("toxic", "harmless", "unsure")
    >>> asked.read("Toxic"), asked.read("unsure"), asked.word("real"), asked.read("purple")
    ('fake', 'uncertain', 'harmless', None)
    """

    positive: str = FAKE
    negative: str = REAL
    abstention: str = UNCERTAIN

    def __post_init__(self) -> None:
        if len({folded(word) for word in self.words}) < 3 or not all(map(str.strip, self.words)):
            raise UsageError.of("three-words", words=" ".join(self.words))

    @classmethod
    def of(cls, asked: AskSpec) -> Question:
        """Make it from the options of a run."""
        return cls(asked.positive, asked.negative, asked.abstention)

    @property
    def words(self) -> tuple[str, str, str]:
        """The words that an answer may have: the negative class, the positive one, the abstention."""
        return self.negative, self.positive, self.abstention

    @property
    def is_usual(self) -> bool:
        """Whether the question is that of the triage evaluation document."""
        return self == USUAL

    @property
    def reading(self) -> ReadSpec:
        """How result rows with these words are read."""
        return ReadSpec(positive=self.positive, negative=self.negative, abstain=(self.abstention,))

    @cached_property
    def _own(self) -> dict[str, str]:
        return {folded(word): name for word, name in zip(self.words, (REAL, FAKE, UNCERTAIN), strict=True)}

    @cached_property
    def _others(self) -> VerdictWords:
        return VerdictWords.of(self.reading)

    def read(self, text: str | None) -> str | None:
        """Return fake, real or uncertain for a word of the question, or one that means the same; None for others."""
        plain = folded((text or "").strip().strip(".!*\"'"))
        found = self._own.get(plain) or self._others.read(text)
        return {self.positive: FAKE, self.negative: REAL}.get(found or "", found)

    def word(self, name: str | None) -> str | None:
        """Return the question's word for fake, real or uncertain."""
        return dict(zip((REAL, FAKE, UNCERTAIN), self.words, strict=True)).get(name or "")


USUAL: Final = Question()
