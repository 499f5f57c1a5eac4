"""Channels: chains of links, folders of noise and rooms, lost packets, codecs of one's own, and presets."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from hitmiss.attacks.audio import Chain, preset, transform
from hitmiss.attacks.conditions import transform as of_medium
from hitmiss.attacks.family import perturbation
from hitmiss.core.errors import UsageError

soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")
pytest.importorskip("av", reason="the extra audio is not installed")
RATE = 16000


def clip(seed: int = 0, n: int = RATE) -> np.ndarray:
    return (0.1 * np.random.default_rng(seed).standard_normal(n)).astype(np.float32)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_chain_is_its_links_one_after_the_other() -> None:
    chain = pickle.loads(pickle.dumps(Chain("gain(db=-6)>codec(ulaw) > gain(db=6)")))
    found = chain(clip(), RATE, rng())
    first = transform("gain(db=-6)")(clip(), RATE, rng())
    coded = Chain("codec(ulaw)")(first, RATE, rng())
    assert found == pytest.approx(transform("gain(db=6)")(coded, RATE, rng()), abs=1e-6)
    assert str(chain) == "gain(db=-6) > codec(ulaw) > gain(db=6)"
    for text in ("gain(db=1) >", "codec(mp3:x)", "codec(nothing)"):
        with pytest.raises(UsageError):
            Chain(text)


def test_noise_and_rooms_come_from_folders(tmp_path: Path) -> None:
    hum = np.sin(2 * np.pi * 50 * np.arange(3 * RATE) / RATE)
    (tmp_path / "noise").mkdir()
    (tmp_path / "rooms").mkdir()
    soundfile.write(tmp_path / "noise" / "hum.wav", hum, RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "rooms" / "one.wav", np.array([0.0, 0.0, 1.0, 0.5]), RATE, subtype="FLOAT")
    x = clip()
    added = of_medium(f"noise({tmp_path}/noise, snr=10)")(x, RATE, rng()) - x
    assert 10 * np.log10(np.mean(x**2) / np.mean(added**2)) == pytest.approx(10, abs=0.01)
    spectrum = np.abs(np.fft.rfft(added))
    assert np.argmax(spectrum) == 50
    wet = of_medium(f"rir({tmp_path}/rooms)")(x, RATE, rng())
    wanted = x + 0.5 * np.concatenate([[0], x[:-1]])  # the direct sound is not delayed
    wanted *= np.sqrt(np.mean(x.astype(float) ** 2) / np.mean(wanted**2))
    assert wet == pytest.approx(wanted, abs=1e-4)
    with pytest.raises(UsageError) as empty:
        of_medium(f"noise({tmp_path}/none, snr=10)")(x, RATE, rng())
    assert empty.value.code == "empty-folder"


def test_packets_are_lost_at_the_rate_asked_for() -> None:
    x = np.ones(200 * RATE, dtype=np.float32)
    lost = perturbation("packet_loss(rate=0.2, burst=3)")(x, rng(1), sample_rate=RATE) == 0
    assert lost.mean() == pytest.approx(0.2, abs=0.02)
    packets = lost.reshape(-1, 320)
    assert (packets.all(axis=1) | ~packets.any(axis=1)).all()
    ends = np.diff(np.concatenate([[0], packets[:, 0], [0]]).astype(int))
    assert packets[:, 0].sum() / (ends == 1).sum() == pytest.approx(3, rel=0.1)  # packets in a burst


def test_users_objects_and_onnx_codecs_are_links(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def half(samples, sample_rate):\n    return samples * 0.5\n")
    found = of_medium(f"{tmp_path}/mine.py:half > gain(db=0)")(clip(), RATE, rng())
    assert found == pytest.approx(clip() * 0.5, abs=1e-7)


@pytest.mark.extras
def test_an_onnx_encoder_decoder_is_a_codec(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Pad", ["x", "pads"], ["y"])
    pads = onnx.numpy_helper.from_array(np.array([0, 0, 9, 0, 0, 0]), "pads")
    ends = [value(name, onnx.TensorProto.FLOAT, [1, 1, f"n{name}"]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "late", ends[:1], ends[1:], [pads])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "late.onnx"))
    found = of_medium(f"{tmp_path}/late.onnx")(clip(), RATE, rng())
    assert found == pytest.approx(clip(), abs=1e-7)  # its delay is taken out


@pytest.mark.parametrize("name", ["alaw", "ogg"])
def test_further_codecs_are_aligned(name: str) -> None:
    t = np.arange(2 * RATE) / RATE
    x = (0.3 * np.sin(2 * np.pi * (300 + 400 * t) * t)).astype(np.float32)
    coded = Chain(f"codec({name})")(x, RATE, rng())
    assert len(coded) == len(x) and np.corrcoef(x, coded)[0, 1] > 0.97


def test_presets_are_readable_and_complete() -> None:
    clad = preset("clad(noises)")
    assert clad is not None and len(set(clad)) == 33
    without = preset("clad")
    assert without is not None and len(without) == 26
    for text in without:
        changed = of_medium(text)(clip(n=4 * RATE), RATE, rng())
        assert np.isfinite(changed).all() and not np.array_equal(changed, clip(n=4 * RATE))
    codecs = preset("asvspoof2021-la")
    assert codecs is not None and all(Chain(text) for text in codecs)


def test_rawboost_changes_a_clip_and_keeps_its_length() -> None:
    found = perturbation("rawboost")(clip(), rng())
    assert found.shape == clip().shape and 0 < np.abs(found - clip()).max() < 2
