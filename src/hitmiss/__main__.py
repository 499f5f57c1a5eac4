"""`python -m hitmiss` is the command `hitmiss`."""

import sys

from hitmiss.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
