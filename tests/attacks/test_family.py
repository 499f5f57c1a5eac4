"""The interface of perturbations, and what every registered one must keep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hitmiss.attacks.family import Attack, all_attacks, attack, find_attack, perturbation
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.registry import forget

CLIP = np.random.default_rng(1).standard_normal(9000).astype(np.float32) * np.float32(0.1)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


OF_SOUND = [
    entry
    for name, entry in all_attacks().items()
    if entry.function.__module__ == "hitmiss.attacks.audio" and name != "rir"  # it needs a folder: see test_channel.py
]
each_attack = pytest.mark.parametrize("entry", OF_SOUND, ids=lambda entry: str(entry.name))


@each_attack
def test_strength_nought_is_identity_and_a_copy(entry: Attack) -> None:
    given = CLIP.copy()
    out = entry.apply(given, 0.0, rng())
    assert np.array_equal(out, given) and out is not given


@each_attack
def test_the_input_is_left_alone_and_the_kind_kept(entry: Attack) -> None:
    given = CLIP.copy()
    out = entry.apply(given, 1.0, rng())
    assert np.array_equal(given, CLIP)
    assert out.dtype == given.dtype and out.ndim == 1 and len(out)
    assert not np.array_equal(out, given)


@each_attack
def test_the_same_generator_gives_the_same_digits(entry: Attack) -> None:
    assert np.array_equal(entry.apply(CLIP, 0.7, rng()), entry.apply(CLIP, 0.7, rng()))


@each_attack
@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
def test_a_strength_outside_is_refused(entry: Attack, strength: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        entry.apply(CLIP, strength, rng())


@each_attack
def test_each_says_what_it_does(entry: Attack) -> None:
    assert len(entry.about) > 20 and entry.about != entry.name


def test_text_is_the_perturbation() -> None:
    for text in ("noise(snr=15)", "echo(delay=0.3, level=0.5)", "gain(db=-6, strength=0.25)"):
        assert str(perturbation(text)) == text
        assert str(perturbation(str(perturbation(text)))) == text


def test_names_are_found_in_any_case_and_missed_with_a_hint() -> None:
    assert find_attack("GAIN").name == "gain"
    with pytest.raises(UnknownName, match="did you mean 'noise'"):
        perturbation("nose(snr=3)")
    with pytest.raises(UnknownName, match="setting of noise"):
        perturbation("noise(snrr=3)")
    with pytest.raises(UnknownName, match="setting of noise"):
        find_attack("noise").apply(CLIP, 1.0, rng(), snrr=3)
    with pytest.raises(UsageError, match="strength"):
        perturbation("noise(strength=loud)")


@pytest.fixture
def broken() -> Iterator[str]:
    @attack
    def broken_one(x, strength, rng, *, depth=1.0):  # type: ignore[no-untyped-def]  # noqa: ARG001
        return x * np.inf

    yield "broken_one"
    forget("broken_one", "attack")


def test_what_is_not_finite_is_refused(broken: str) -> None:
    with pytest.raises(DataError, match="NaN or infinite"):
        find_attack(broken).apply(CLIP, 1.0, rng())


def test_a_signature_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="must take"):
        attack(lambda x, rng: x)


def test_arrays_of_any_shape_pass(broken: str) -> None:
    record = np.ones((500, 12))
    assert find_attack(broken).apply(record, 0.0, rng()).shape == (500, 12)
