"""Channels: chains of links, folders of noise and rooms, lost packets, codecs of one's own, and presets."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hitmiss.attacks.audio import transform
from hitmiss.attacks.channels import Chain, preset
from hitmiss.attacks.family import perturbation
from hitmiss.attacks.manipulation import transform as of_medium
from hitmiss.cli.main import run
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


LEVEL = """
import numpy as np

def level(batch):
    return np.log(np.square(np.asarray(batch, dtype=np.float64)).mean(axis=-1))
level.sample_rate = 16000
"""


def scored(folder: Path, manipulation: str, *more: str) -> dict[str, float]:
    """The scores of a level detector by the command line, by item and manipulation."""
    (folder / "level.py").write_text(LEVEL)
    for i in range(3):
        soundfile.write(folder / f"{i}.wav", clip(i), RATE, subtype="FLOAT")
    (folder / "data.tsv").write_text("file\tlabel\n0.wav\treal\n1.wav\tfake\n2.wav\treal\n")
    words = ["detect", "--detector", f"{folder}/level.py:level", "--data", f"{folder}/data.tsv", "-p", "deepfake-audio"]
    words += ["--outputs", "logit", "--higher", "real", "--manipulate", manipulation, "-o", f"{folder}/run", *more]
    assert run(words) == 0
    trials = pl.read_parquet(folder / "run" / "trials.parquet")
    return dict(zip(trials["item"], trials["score"], strict=True))


def levels(sounds: list[np.ndarray]) -> list[float]:
    return [float(np.log(np.square(np.asarray(sound, dtype=np.float64)).mean())) for sound in sounds]


def resampled(sound: np.ndarray, before: int, after: int) -> np.ndarray:
    return np.asarray(pytest.importorskip("soxr").resample(sound, before, after))


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # the exporter's own
def test_a_neural_codec_exported_to_onnx_runs_from_the_command_line(tmp_path: Path) -> None:
    torch, runtime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    draw = np.random.default_rng(3)

    class Codec(torch.nn.Module):  # type: ignore[misc,name-defined]
        """A convolutional encoder, two residual codebooks, and a decoder."""

        def __init__(self) -> None:
            super().__init__()
            self.down = torch.nn.Conv1d(1, 16, 32, stride=16)
            self.up = torch.nn.ConvTranspose1d(16, 1, 32, stride=16)
            self.books = torch.nn.Parameter(torch.zeros(2, 32, 16))
            for parameter in self.parameters():
                values = 0.3 * draw.standard_normal(tuple(parameter.shape))
                parameter.data = torch.tensor(values, dtype=torch.float32)

        def forward(self, x: Any) -> Any:
            left = torch.tanh(self.down(x)).transpose(1, 2)
            coded = torch.zeros_like(left)
            for book in self.books:
                nearest = (left.unsqueeze(-2) - book).square().sum(-1).argmin(-1)
                coded, left = coded + book[nearest], left - book[nearest]
            return self.up(coded.transpose(1, 2))

    place = str(tmp_path / "rvq.onnx")
    shapes = {"x": {2: torch.export.Dim("n", min=1024)}}
    program = torch.onnx.export(
        Codec().eval(), (torch.zeros(1, 1, 4096),), input_names=["x"], dynamic_shapes=shapes, dynamo=True, verbose=False
    )
    program.save(place)
    session = runtime.InferenceSession(place)

    def through(sound: np.ndarray) -> np.ndarray:
        given = resampled(np.concatenate([sound, np.zeros(RATE // 4, dtype=np.float32)]), RATE, 24000)
        return resampled(session.run(None, {"x": given[None, None]})[0].reshape(-1), 24000, RATE)[: len(sound)]

    wanted = [through(clip(i)) for i in range(3)]
    found = of_medium(f"codec({place}, rate=24000)")(clip(1), RATE, rng())
    assert found == pytest.approx(wanted[1], abs=1e-6) and np.std(found) > 0.01
    scores = scored(tmp_path, f"codec({place}, rate=24000)")
    coded = [score for item, score in scores.items() if "codec" in item]
    assert sorted(coded) == pytest.approx(sorted(levels(wanted)), abs=1e-6) and len(scores) == 6
    with pytest.raises(UsageError) as none:
        of_medium("codec(nowhere.onnx)")
    assert none.value.code == "missing-file"


ENCODEC = """
import torch
from transformers import EncodecConfig, EncodecModel
torch.manual_seed(0)
small = EncodecConfig(num_filters=4, hidden_size=16, codebook_size=16, codebook_dim=16, upsampling_ratios=[8, 4], target_bandwidths=[6.0])
model = EncodecModel(small).eval()

def encodec(sound):
    with torch.no_grad():
        return model(torch.tensor(sound)[None, None], bandwidth=6.0).audio_values
"""


@pytest.mark.extras
def test_encodec_of_transformers_is_a_codec_of_a_few_lines(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    (tmp_path / "mine.py").write_text(ENCODEC)
    found = of_medium(f"codec(mp3:1) > codec({tmp_path}/mine.py:encodec, rate=24000)")(clip(), RATE, rng())
    own: dict[str, Any] = {}
    exec(ENCODEC, own)
    after = np.concatenate([of_medium("codec(mp3:1)")(clip(), RATE, rng()), np.zeros(RATE // 4, dtype=np.float32)])
    decoded = own["encodec"](resampled(after, RATE, 24000)).numpy().reshape(-1)
    assert found == pytest.approx(resampled(decoded, 24000, RATE)[:RATE], abs=1e-6)


TRANSFORMS = """
from audiomentations import AddGaussianSNR, Compose, Gain, LowPassFilter
shaped = Compose([LowPassFilter(p=1.0), AddGaussianSNR(p=1.0), Gain(-20.0, -20.0, p=1.0)])
"""


@pytest.mark.extras
def test_transforms_of_audiomentations_run_from_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("audiomentations")
    (tmp_path / "mine.py").write_text(TRANSFORMS)
    here = scored(tmp_path, f"{tmp_path}/mine.py:shaped > gain(db=0)")
    (tmp_path / "run").rename(tmp_path / "before")
    assert scored(tmp_path, f"{tmp_path}/mine.py:shaped > gain(db=0)", "--workers", "1") == here
    plain, changed = (
        [s for item, s in here.items() if ("shaped" in item) == is_changed] for is_changed in (False, True)
    )
    assert plain == pytest.approx(levels([clip(i) for i in range(3)])) and len(changed) == 3
    assert all(after < before - 1 for before, after in zip(plain, changed, strict=True))


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
    for name in ("asvspoof2021-la", "asvspoof5"):
        codecs = preset(name)
        assert codecs is not None and all(Chain(text) for text in codecs)


def test_rawboost_changes_a_clip_and_keeps_its_length() -> None:
    found = perturbation("rawboost")(clip(), rng())
    assert found.shape == clip().shape and 0 < np.abs(found - clip()).max() < 2
