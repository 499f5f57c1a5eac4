"""Verdicts from a function, and from a language model where inspect_ai is installed, on the same pictures.

The "model" is the stand-in server of hitmiss: it measures the picture by a fixed rule and is no language model. With a
real one, leave `base_url` out and name it as inspect_ai does, `anthropic/…`; its key is taken from the environment.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from hitmiss.llm.backends import open_models
from hitmiss.llm.items import read_items
from hitmiss.llm.plan import Plan, Settings
from hitmiss.llm.run import run_llm
from hitmiss.llm.standin import StandIn
from hitmiss.protocols.triage import evaluate_trials
from hitmiss.simulate.pictures import write


def main(folder: Path) -> None:
    """Write simulated pictures into a folder, ask, and print a few figures."""
    items = read_items(write(folder, share=0.2) / "dataset.jsonl")
    functions = open_models(["hitmiss.llm.standin:look"])
    names, modes = list(functions), (False,)
    with StandIn() as server:
        if find_spec("inspect_ai") is not None:
            names, modes = [*names, "stand-in"], (False, True)
        settings = Settings(base_url=server.url, temperature=0.0)
        known = {name: model.identity for name, model in functions.items()}
        plan = Plan(items, names, modes, settings=settings, detectors=known)
        found = run_llm(plan, output=folder / "results.jsonl", models=functions, tool_cache=folder / "tools")
    print(f"{len(found.rows)} answers about {len(items)} pictures")
    for e in evaluate_trials(found.trials, metrics=["accuracy", "coverage", "fake_slip_rate"], bootstrap=0).figures:
        print(e)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/llm_example"))
