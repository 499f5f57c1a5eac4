"""From files to results by a protocol, and back: evaluate, open a run, verify a claim."""
