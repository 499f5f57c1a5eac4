"""Shapes of answers that language models give, and what each one is read as.

`docs/llm.md` shows this list; a test keeps the two equal. "not understood" is a problem, never a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """An answer; the verdict and the confidence that it is read as (None: there is none)."""

    text: str
    verdict: str | None
    confidence: float | None = None
    why: str = ""


SHAPES = (
    # the schema, and other ways to write it
    Shape('{"verdict": "fake", "confidence": 0.9, "rationale": "a grid"}', "fake", 0.9, "the schema"),
    Shape('```json\n{"verdict": "fake", "confidence": 0.9}\n```', "fake", 0.9, "a code fence"),
    Shape('I see a grid. {"verdict": "fake", "confidence": 0.9} Good luck.', "fake", 0.9, "an object within prose"),
    Shape('{"verdict": "fake", "confidence": 0.9,}', "fake", 0.9, "a trailing comma"),
    Shape("{'verdict': 'fake', 'confidence': 0.9}", "fake", 0.9, "single quotes"),
    Shape('[{"verdict": "fake", "confidence": 0.9}]', "fake", 0.9, "a list of one object"),
    Shape('{"result": {"verdict": "real", "confidence": 0.8}}', "real", 0.8, "a nested object"),
    Shape('{"verdict": {"label": "real", "confidence": 0.8}}', "real", 0.8, "a nested object"),
    Shape('"{\\"verdict\\": \\"fake\\", \\"confidence\\": 0.9}"', "fake", 0.9, "JSON inside a JSON text"),
    Shape('{"Verdict": "Fake", "Confidence": 0.9}', "fake", 0.9, "names in any case"),
    Shape('{"final_verdict": "fake", "confidence": 0.9}', "fake", 0.9, "a usual name of the field"),
    Shape('{"prediction": "fake", "confidence": 0.9}', "fake", 0.9, "a usual name of the field"),
    Shape('<think>It could be real.</think>{"verdict": "fake", "confidence": 0.9}', "fake", 0.9, "reasoning before it"),
    Shape('{"verdict": "fake", "confidence": 0.9} {"verdict": "fake", "confidence": 0.9}', "fake", 0.9, "said twice"),
    # words
    Shape('{"verdict": "AI-generated", "confidence": 0.9}', "fake", 0.9, "the words of result files"),
    Shape('{"verdict": "synthetic", "confidence": 0.9}', "fake", 0.9, "the words of result files"),
    Shape('{"verdict": "Authentic.", "confidence": 0.9}', "real", 0.9, "the words of result files"),
    Shape('{"Urteil": "gefälscht", "Konfidenz": 0.9}', "fake", 0.9, "words of German"),
    Shape('{"verdict": "authentique", "confiance": "90%"}', "real", 0.9, "words of French"),
    Shape("Veredicto: incierto", "uncertain", None, "words of Spanish"),
    Shape('{"verdict": "falsch", "confidence": 0.9}', None, None, "a word that could mean something else"),
    Shape('{"verdict": "unsure", "confidence": 0.5}', "uncertain", 0.5, "the words of result files"),
    Shape('{"verdict": "cannot determine", "confidence": 0.5}', "uncertain", 0.5, "the words of result files"),
    Shape('{"verdict": 1, "confidence": 0.9}', "fake", 0.9, "1 is the positive class, fake"),
    Shape('{"verdict": "0", "confidence": 0.9}', "real", 0.9, "0 is the negative class, real"),
    Shape('{"verdict": true, "confidence": 0.9}', "fake", 0.9, "true is the positive class, fake"),
    Shape('{"is_fake": false, "confidence": 0.9}', "real", 0.9, "a question with yes or no"),
    Shape('{"is_real": false, "confidence": 0.9}', "fake", 0.9, "a question with yes or no"),
    # confidence
    Shape('{"verdict": "fake"}', "fake", None, "no confidence: the verdict stays"),
    Shape('{"verdict": "fake", "confidence": null}', "fake", None, "no confidence: the verdict stays"),
    Shape('{"verdict": "fake", "confidence": "0.9"}', "fake", 0.9, "a number as text"),
    Shape('{"verdict": "fake", "confidence": "90%"}', "fake", 0.9, "per cent, because the value says so"),
    Shape('{"verdict": "fake", "confidence_percent": 90}', "fake", 0.9, "per cent, because the name says so"),
    Shape('{"verdict": "fake", "confidence": 1.0000001}', "fake", 1.0, "1, rounded"),
    Shape('{"verdict": "fake", "confidence": "high"}', "fake", None, "unreadable confidence: the verdict stays"),
    Shape('{"verdict": "fake", "confidence": 90}', "fake", None, "90 of what? the verdict stays"),
    Shape('{"verdict": "fake", "confidence": -0.1}', "fake", None, "unreadable confidence: the verdict stays"),
    Shape('{"verdict": "fake", "confidence": 0.9, "confidence": 0.1}', "fake", None, "two confidences: neither counts"),
    # text without an object
    Shape("Verdict: FAKE", "fake", None, "a marked line"),
    Shape("**Verdict:** Fake\n**Confidence:** 85%\nThe hands are wrong.", "fake", 0.85, "marked lines"),
    Shape("The hands are wrong.\n\nFinal verdict: real", "real", None, "a marked line"),
    Shape("<verdict>fake</verdict><confidence>0.7</confidence>", "fake", 0.7, "tags"),
    Shape("FAKE", "fake", None, "the word alone"),
    Shape("Fake.\n\nThe hands are wrong.", "fake", None, "the word alone on its line"),
    # not understood
    Shape("", None, None, "empty"),
    Shape("I believe that this picture is fake.", None, None, "prose"),
    Shape("This is not fake.", None, None, "prose"),
    Shape("REAL. I am sure.", None, None, "prose"),
    Shape('{"verdict": "mostly real", "confidence": 0.9}', None, None, "an unknown word"),
    Shape('{"verdict": ["real"], "confidence": 0.9}', None, None, "a list"),
    Shape('{"verdict": 0.7, "confidence": 0.9}', None, None, "a number that is neither 0 nor 1"),
    Shape('{"verdict": "fake", "verdict": "real"}', None, None, "two verdicts in one object"),
    Shape('{"verdict": "fake", "prediction": "real"}', None, None, "two verdicts in one object"),
    Shape('{"verdict": "real"} {"verdict": "fake"}', None, None, "two objects that disagree"),
    Shape('{"a": {"verdict": "real"}, "b": {"verdict": "fake"}}', None, None, "two objects that disagree"),
    Shape('Verdict: real\n{"verdict": "fake", "confidence": 0.9}', None, None, "a line and an object that disagree"),
    Shape('{"verdict": "real", "confidence": 0.9', None, None, "cut off"),
    Shape('{"verdict": "real" | "fake" | "uncertain", "confidence": number}', None, None, "the question repeated"),
)


def row_of_page(shape: Shape) -> str:
    """Return the row of a shape in the table of docs/llm.md."""
    answer = shape.text.replace("\n", "↵").replace("|", "\\|") or " "
    read = "not understood" if shape.verdict is None else shape.verdict
    read += f", {shape.confidence:g}" if shape.confidence is not None else ""
    return f"| `{answer}` | {read} | {shape.why} |"
