"""RunSpec: how a run over many items is made; what detect, attack and llm have in common."""

from __future__ import annotations

from dataclasses import dataclass
from os import fspath
from typing import Annotated, Final

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Option
from hitmiss.core.spec import READING, RUNNING, Spec, opt

ROOT: Final = opt(
    "Folder of the files (default: that of the table which names them).", READING, metavar="PATH", read=fspath
)
SUFFIX: Final = opt("Added to each file name, such as .flac.", READING)
WEIGHTS: Final = opt("Checkpoint for a torch module (.safetensors, .pt).", metavar="PATH", read=fspath)


@dataclass(frozen=True)
class RunSpec(Spec):
    """Which items a run takes, in which order, how it goes on after an interruption, and what it may use.

    Examples
    --------
    >>> RunSpec(limit=10).changed(resume=True).resume
    True
    >>> RunSpec(limit=0)
    Traceback (most recent call last):
    hitmiss.core.errors.UsageError: limit must be above 0; found 0
    """

    _form, _option = "run", "run option"
    limit: Annotated[int | None, opt("Only so many items: the first, or with --shuffle any.", RUNNING, common=True)] = (
        None
    )
    shuffle: Annotated[bool, opt("Take the items in random order (of --seed).", RUNNING)] = False
    seed: Annotated[int | None, opt("Seed of the order, and of models that take one.", RUNNING)] = None
    resume: Annotated[bool, opt("Continue the run in the folder.", RUNNING, common=True)] = False
    retry: Annotated[bool, opt("With --resume: try failed items again.", RUNNING)] = False
    join: Annotated[bool, opt("Help the process that started the run.", RUNNING)] = False
    max_calls: Annotated[int | None, opt("Stop after so many calls of the model; --resume continues.", RUNNING)] = None
    max_time: Annotated[
        float | None, opt("Stop after so many seconds; --resume continues.", RUNNING, metavar="SECONDS")
    ] = None
    max_total_tokens: Annotated[
        int | None, opt("Stop after so many tokens of all answers; --resume continues.", RUNNING)
    ] = None
    max_cost: Annotated[
        float | None, opt("Stop after so much money, by the prices of the models; --resume continues.", RUNNING)
    ] = None

    fail_rate: Annotated[
        float | None, opt("Stop with exit code 4 if a larger share of the items failed.", RUNNING, metavar="SHARE")
    ] = None

    patience: Annotated[
        int, opt("Stop after so many results in a row that cannot be used, whatever the item; 0: never.", RUNNING)
    ] = 20

    def __post_init__(self) -> None:
        if self.patience < 0:
            raise UsageError.of("out-of-range/least", name=Option("patience"), least=0, found=self.patience)
        for name in ("limit", "max_calls", "max_time", "max_total_tokens", "max_cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError.of("out-of-range/above", name=Option(name), low=0, found=value)
