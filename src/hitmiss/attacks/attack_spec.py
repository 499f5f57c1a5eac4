"""AttackSpec: what is done to every record, and how the model that is attacked is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import fspath
from typing import Annotated, Any, Literal

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Option
from hitmiss.core.run_spec import WEIGHTS
from hitmiss.core.spec import CERTAINTY, MEASURING, OTHERS, READING, RUNNING, Spec, as_names, opt

LABELS = "For WFDB records: a table with the record and a column of 0 and 1 per class (default: the headers' #Dx)."
FAMILY = "A family such as band_noise, or with settings, band_noise(beta=0.5); may be repeated."
LEADS = (
    "The leads that the model takes, in its order: I,II,III,aVR,… or `standard` (default: as it says, or the data's)."
)
STRENGTHS = "One or more strengths from 0 to 1."
Axes = Literal["sample_lead", "lead_sample"]


def _numbers(given: float | Sequence[float]) -> tuple[float, ...]:
    """Return one number or several as several."""
    return (float(given),) if isinstance(given, int | float) else tuple(float(number) for number in given)


def _listed(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names that may be one text with commas."""
    names = given.split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in names if name.strip())


def _number(given: Any) -> Any:
    """Return a number of numpy as one of Python; what is no number is refused by the type of the field."""
    return given.item() if hasattr(given, "item") else given


@dataclass(frozen=True)
class AttackSpec(Spec):
    """What is done to every record, and how the model that is attacked is opened.

    Examples
    --------
    >>> AttackSpec().changed(families="band_noise", strengths=0.5, leads="I, II").leads
    ('I', 'II')
    >>> AttackSpec(batch=0)
    Traceback (most recent call last):
    hitmiss.core.errors.UsageError: batch must be 1 or more; found 0
    """

    _form, _option = "attack", "option"
    families: Annotated[tuple[str, ...], opt(FAMILY, OTHERS, "--family", read=as_names, common=True)] = ()
    strengths: Annotated[tuple[float, ...], opt(STRENGTHS, read=_numbers, takes_words=True, common=True)] = ()
    minimal: Annotated[
        tuple[str, ...],
        opt("Search for the least strength of a family that changes each record; may be repeated.", read=as_names),
    ] = ()
    targets: Annotated[
        tuple[str, ...],
        opt("Aim at a class, `MI` or `MI:suppress`; may be repeated.", OTHERS, "--target", read=as_names, common=True),
    ] = ()
    window: Annotated[float | None, opt("Seconds of the window (default: the whole record).", read=_number)] = None
    centers: Annotated[
        tuple[float, ...],
        opt("Centre(s) of the window in seconds.", OTHERS, "--center", read=_numbers, takes_words=True),
    ] = ()
    attack_from: Annotated[
        Literal["y_true", "prediction"], opt("What is climbed away from: the true labels, or the clean prediction.")
    ] = "y_true"
    early_stop: Annotated[bool, opt("Stop with a record once its prediction has changed.")] = True
    lead_consistent: Annotated[bool, opt("Change eight leads, derive the other four.")] = False
    control: Annotated[bool, opt("Run noise of the same norm beside each attack.")] = True
    threshold: Annotated[
        tuple[float, ...],
        opt("Decide at this probability; several: one per class.", MEASURING, read=_numbers, takes_words=True),
    ] = ()
    weights: Annotated[str | None, WEIGHTS] = None
    layout: Annotated[Axes, opt("What the model takes.", READING)] = "sample_lead"
    data_layout: Annotated[Axes, opt("Order of the axes in the data.")] = "sample_lead"
    labels: Annotated[str | None, opt(LABELS, READING, metavar="FILE", read=fspath)] = None
    fs: Annotated[float | None, opt("Samples per second, if the data does not say.", read=_number)] = None
    leads: Annotated[tuple[str, ...], opt(LEADS, read=_listed, is_single=True, metavar="NAMES")] = ()
    outputs: Annotated[Literal["auto", "logit", "probability"], opt("What the model gives.")] = "auto"
    single_label: Annotated[
        bool | None,
        opt(
            "Whether exactly one class is true (default: if the outputs sum to 1; asked for if not clear).",
            OTHERS,
            "--single-label/--multi-label",
        ),
    ] = None
    device: Annotated[str, opt("cpu, cuda or auto.", RUNNING)] = "cpu"
    batch: Annotated[int, opt("Records in a batch of a gradient attack.", read=_number)] = 32
    seed: Annotated[int, opt("Seed of all random numbers.", CERTAINTY, read=_number)] = 0

    def __post_init__(self) -> None:
        self._read_fields()
        for name, value, least in (("batch", self.batch, 1), ("seed", self.seed, 0)):
            if value < least:
                raise UsageError.of("out-of-range/least", name=Option(name), least=least, found=value)
