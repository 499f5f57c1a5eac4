"""From numbers and tests to a verdict: data first, sentences last.

Every conclusion is a `Finding` with a code, a subject and its numbers; a `Verdict` holds the main one, the test behind
it, what speaks against it, and the checks. Codes decide; the sentences of `catalogue` are written from them, once for
every output.
"""
