"""A standing adversary: damaged files, odd options, faults of the disk. Whatever it does, hitmiss answers by its table of exit codes.

    python -m tests.adversary --minutes 30        # or: make adversary MINUTES=30

A few seconds of it, with fixed draws, are part of `make test` (`test_adversary.py`). A failure is printed with the draw
that made it; `--draw N` repeats that one.
"""
