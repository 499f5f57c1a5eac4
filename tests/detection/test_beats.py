"""BEATs: the official checkpoint format, against a slow implementation written from the description."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detect_parts import clip, corpus

from hitmiss.core.errors import DataError, IncompleteRun, UsageError
from hitmiss.detection import beats, filterbank
from hitmiss.detection.beats import (
    Beats,
    BeatsConfig,
    BeatsDetector,
    random_checkpoint,
    weight_shapes,
)
from hitmiss.detection.beats_encoder import PLAIN, Arrangement, relative_buckets
from hitmiss.detection.loop import detect
from hitmiss.detection.opening import open_detector
from hitmiss.runs.manifest import MANIFEST, load_manifest, sealed

pytestmark = pytest.mark.extras

SMALL = BeatsConfig(
    embed_dim=24, encoder_layers=2, encoder_embed_dim=32, encoder_ffn_embed_dim=48, encoder_attention_heads=4,
    conv_pos=8, conv_pos_groups=4, num_buckets=16, max_distance=40,
)  # fmt: skip


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    torch = pytest.importorskip("torch")
    torch.save(random_checkpoint(SMALL), tmp_path / "beats.pt")
    return tmp_path / "beats.pt"


def slow_beats(w: dict[str, np.ndarray], wave: np.ndarray) -> np.ndarray:
    """One clip, in float64, a loop for every head, patch and place: nothing shared with the code under test."""
    features = (slow_fbank(wave * 2.0**15) - 15.41663) / (2 * 6.55582)
    rows = len(features) // 16
    patches = [features[16 * t : 16 * t + 16, 16 * f : 16 * f + 16] for t in range(rows) for f in range(8)]
    kernel = w["patch_embedding.weight"][:, 0]
    x = np.array([(kernel * patch).sum(axis=(1, 2)) for patch in patches])
    x = norm(x, w, "layer_norm") @ w["post_extract_proj.weight"].T + w["post_extract_proj.bias"]
    x = norm(x + slow_positions(x, w), w, "encoder.layer_norm")
    alpha = (2 * SMALL.encoder_layers) ** 0.25
    for i in range(SMALL.encoder_layers):
        name = f"encoder.layers.{i}."
        x = norm(alpha * x + slow_attention(x, w, name + "self_attn."), w, name + "self_attn_layer_norm")
        inner = gelu(x @ w[name + "fc1.weight"].T + w[name + "fc1.bias"])
        x = norm(alpha * x + inner @ w[name + "fc2.weight"].T + w[name + "fc2.bias"], w, name + "final_layer_norm")
    return np.mean(x @ w["predictor.weight"].T + w["predictor.bias"], axis=0)


def slow_fbank(wave: np.ndarray) -> np.ndarray:
    window = np.hanning(400) ** 0.85
    edges = np.linspace(1127 * np.log(1 + 20 / 700), 1127 * np.log(1 + 8000 / 700), filterbank.BINS + 2)
    mels = 1127 * np.log(1 + np.arange(256) * 16000 / 512 / 700)
    rows = []
    for start in range(0, len(wave) - 399, 160):
        frame = wave[start : start + 400] - wave[start : start + 400].mean()
        frame = np.concatenate([[frame[0] * (1 - 0.97)], frame[1:] - 0.97 * frame[:-1]]) * window
        power = np.abs(np.fft.rfft(frame, 512))[:256] ** 2
        row = []
        for left, centre, right in zip(edges, edges[1:], edges[2:], strict=False):
            up, down = (mels - left) / (centre - left), (right - mels) / (right - centre)
            row.append((np.clip(np.minimum(up, down), 0, None) * power).sum())
        rows.append(np.log(np.maximum(row, 2.0**-23)))
    return np.array(rows)


def slow_positions(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
    v = w["encoder.pos_conv.0.weight_v"]
    kernel = v / np.sqrt((v**2).sum(axis=(0, 1))) * w["encoder.pos_conv.0.weight_g"][0, 0]
    out, size = np.zeros_like(x), x.shape[1] // SMALL.conv_pos_groups
    for t in range(len(x)):
        for c in range(x.shape[1]):
            group = c // size * size
            for k in range(SMALL.conv_pos):
                at = t + k - SMALL.conv_pos // 2
                if 0 <= at < len(x):
                    out[t, c] += kernel[c, :, k] @ x[at, group : group + size]
    return gelu(out + w["encoder.pos_conv.0.bias"])


def slow_attention(x: np.ndarray, w: dict[str, np.ndarray], name: str) -> np.ndarray:
    q, k, v = (x @ w[f"{name}{p}_proj.weight"].T + w[f"{name}{p}_proj.bias"] for p in "qkv")
    table = w["encoder.layers.0.self_attn.relative_attention_bias.weight"]
    size, out = x.shape[1] // SMALL.encoder_attention_heads, np.zeros_like(x)
    for h in range(SMALL.encoder_attention_heads):
        cut = slice(h * size, h * size + size)
        for i in range(len(x)):
            gates = w[f"{name}grep_linear.weight"] @ q[i, cut] + w[f"{name}grep_linear.bias"]
            a, b = (1 / (1 + math.exp(-gates[s : s + 4].sum())) for s in (0, 4))
            gate = a * (b * w[f"{name}grep_a"][0, h, 0, 0] - 1) + 2
            bias = [gate * table[slow_bucket(j - i), h] for j in range(len(x))]
            weights = k[:, cut] @ q[i, cut] / math.sqrt(size) + bias
            weights = np.exp(weights - weights.max())
            out[i, cut] = weights @ v[:, cut] / weights.sum()
    return out @ w[f"{name}out_proj.weight"].T + w[f"{name}out_proj.bias"]


def slow_bucket(distance: int) -> int:
    half, exact, far = SMALL.num_buckets // 2, SMALL.num_buckets // 4, abs(distance)
    near = (
        far
        if far < exact
        else exact + int(math.log(far / exact) / math.log(SMALL.max_distance / exact) * (half - exact))
    )
    return min(near, half - 1) + (half if distance > 0 else 0)


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def norm(x: np.ndarray, w: dict[str, np.ndarray], name: str) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def test_the_network_is_the_described_one(checkpoint: Path) -> None:
    torch = pytest.importorskip("torch")
    weights = {k: v.double().numpy() for k, v in torch.load(checkpoint, weights_only=True)["model"].items()}
    wave = np.random.default_rng(3).normal(0, 0.1, 9000)
    wanted = slow_beats(weights, wave)
    found = BeatsDetector.load(str(checkpoint)).outputs([wave.astype(np.float32)])[0]
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.filterwarnings("ignore:At least one mel filter")
def test_filterbanks_equal_those_of_transformers() -> None:
    torch, audio = pytest.importorskip("torch"), pytest.importorskip("transformers.audio_utils")
    wave = np.random.default_rng(0).normal(0, 3000, 16000).astype(np.float32)
    filters = audio.mel_filter_bank(
        257, filterbank.BINS, 20, 8000, 16000, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True
    )
    window = audio.window_function(400, "povey", periodic=False)
    wanted = audio.spectrogram(
        wave, window, 400, 160, 512, power=2.0, center=False, preemphasis=0.97, mel_filters=filters, log_mel="log",
        mel_floor=filterbank.FLOOR, remove_dc_offset=True,
    ).T  # fmt: skip
    found = filterbank.fbank(torch.from_numpy(wave)[None])[0].numpy()
    assert found.shape == wanted.shape and np.abs(found - wanted).max() < 1e-3


def test_clips_of_any_length_share_a_batch_without_changing_each_other(checkpoint: Path) -> None:
    detector = open_detector(f"beats:{checkpoint}")
    rng = np.random.default_rng(0)
    clips = [rng.normal(0, 0.1, n).astype(np.float32) for n in (3000, 8123, 16000, 40000)]
    together = detector.outputs(clips)
    alone = np.concatenate([detector.outputs([one]) for one in clips])
    assert np.abs(together - alone).max() < 1e-5
    with pytest.raises(DataError, match="shorter than one patch"):
        detector.outputs([np.zeros(1000, dtype=np.float32)])


@pytest.mark.parametrize("kind", ["fourier", "onednn", "unpadded"])
def test_every_arrangement_gives_the_same_scores_and_padding_changes_none(kind: str) -> None:
    rng = np.random.default_rng(0)
    lengths = (3000, 8123, 16000, 40000, 40000, 180000)  # the last has more scores of attention than fit at once
    clips = [rng.normal(0, 0.1, n).astype(np.float32) for n in lengths]
    weights = random_checkpoint(SMALL)["model"]
    plain = BeatsDetector(Beats(SMALL, weights), arrangement=PLAIN, device="cpu")
    arranged = BeatsDetector(Beats(SMALL, weights), arrangement=Arrangement(**{kind: True}), device="cpu")
    together = arranged.outputs(clips)
    assert np.abs(together - plain.outputs(clips)).max() < 1e-5
    assert np.abs(together - np.concatenate([arranged.outputs([one]) for one in clips])).max() < 1e-5


MEMORY = """
import resource, sys
import torch
from hitmiss.detection.beats import Beats, BeatsConfig, random_checkpoint
config = BeatsConfig(embed_dim=24, encoder_layers=1, encoder_embed_dim=32, encoder_ffn_embed_dim=48, conv_pos=8, conv_pos_groups=4,
                     encoder_attention_heads=4)
network = Beats(config, random_checkpoint(config)["model"]).to("cpu")
for seconds in (2, 120):
    with torch.inference_mode():
        network(torch.zeros(1, seconds * 16000))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_on_a_processor_the_memory_does_not_grow_with_the_square_of_a_clip() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    short, long = map(int, done.stdout.split())
    assert long - short < 400 * 1024  # KiB; the biases of 5,992 patches and four heads as a matrix alone take 561 MiB


def test_bfloat16_is_asked_for_and_moves_scores_little(checkpoint: Path) -> None:
    wave = [np.random.default_rng(1).normal(0, 0.1, 20000).astype(np.float32)]
    exact = open_detector(f"beats:{checkpoint}", device="cpu")
    rounded = open_detector(f"beats:{checkpoint}", precision="bf16", device="cpu")
    assert exact.identity["precision"] == "float32" and rounded.identity["precision"] == "bfloat16"
    change = np.abs(rounded.outputs(wave) - exact.outputs(wave)).max()
    assert 0 < change < 0.02
    with pytest.raises(UsageError) as refused:
        Beats(SMALL, random_checkpoint(SMALL)["model"]).to("cpu", "float64")
    assert refused.value.code == "bad-precision"


def test_eight_bit_products_are_asked_for_and_move_scores_little(checkpoint: Path) -> None:
    rng = np.random.default_rng(1)
    clips = [rng.normal(0, 0.1, n).astype(np.float32) for n in (20000, 31000)]
    exact = open_detector(f"beats:{checkpoint}", device="cpu")
    rounded = open_detector(f"beats:{checkpoint}", precision="int8", device="cpu")
    assert rounded.identity["precision"] == "int8"
    assert 0 < np.abs(rounded.outputs(clips) - exact.outputs(clips)).max() < 0.1


def test_a_run_in_eight_bits_is_not_resumed_by_another_rounding(checkpoint: Path, tmp_path: Path) -> None:
    def run() -> None:
        detector = open_detector(f"beats:{checkpoint}", precision="int8", device="cpu")
        detect(detector, corpus(6), output=tmp_path / "run", load=clip, resume=True)

    run()
    manifest: dict[str, Any] = load_manifest(tmp_path / "run")
    kept, rounding = manifest["config"]["detector"], manifest["config"]["detector"].pop("rounding")
    for before in ({}, {"rounding": "a scale per row, weights up to 1"}):  # an earlier version, another processor
        manifest["config"]["detector"] = {**kept, **before}
        (tmp_path / "run" / MANIFEST).write_bytes(sealed(manifest))
        with pytest.raises(IncompleteRun, match=r"detector\.rounding") as refused:
            run()
        assert refused.value.code == "other-configuration"
    manifest["config"]["detector"] = {**kept, "rounding": rounding}
    (tmp_path / "run" / MANIFEST).write_bytes(sealed(manifest))
    run()


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_below_float32_too_a_score_does_not_depend_on_the_batch(precision: str) -> None:
    config = replace(SMALL, encoder_embed_dim=64, encoder_ffn_embed_dim=256, encoder_layers=6)
    rng = np.random.default_rng(3)
    clips = [rng.normal(0, 0.1, n).astype(np.float32) for n in (40000, 24000, 64000, 52000)]
    network = Beats(config, random_checkpoint(config)["model"])
    detector = BeatsDetector(network, device="cpu", precision=precision, layers=("layer.6",))
    logits, kept = detector.with_layers(clips)
    alone = [detector.with_layers([one]) for one in clips]
    assert np.array_equal(logits, np.concatenate([found for found, _ in alone]))
    assert np.array_equal(kept["layer.6"], np.concatenate([layers["layer.6"] for _, layers in alone]))


def test_keys_left_out_of_cfg_have_the_official_defaults() -> None:
    config = BeatsConfig.of({"input_patch_size": 16, "embed_dim": 24})
    assert (config.deep_norm, config.max_distance) == (False, 1280)
    assert (config.relative_position_embedding, config.gru_rel_pos) == (False, False)


def test_a_network_that_cannot_run_packed_gives_the_same_scores_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_checkpoint(SMALL)["model"]
    clips = [np.random.default_rng(2).normal(0, 0.1, n).astype(np.float32) for n in (9000, 20000)]
    plain = BeatsDetector(Beats(SMALL, weights), arrangement=PLAIN, device="cpu")
    monkeypatch.setattr(beats, "reason_against", lambda _config, _device: None)  # as on a GPU whose compiler is missing
    found = BeatsDetector(Beats(SMALL, weights), device="cpu")
    assert np.abs(found.outputs(clips) - plain.outputs(clips)).max() < 1e-5
    assert found.notes[0].startswith(beats.SLOWER)


@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-5), ("tf32", 1e-2), ("bfloat16", 0.1)])
def test_on_a_gpu_clips_in_one_pack_do_not_change_each_other_by_a_bit(precision: str, most: float) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    config = replace(SMALL, encoder_embed_dim=64, conv_pos=32)
    rng, weights = np.random.default_rng(0), random_checkpoint(config)["model"]
    clips = [rng.normal(0, 0.1, n).astype(np.float32) for n in (3000, 8123, 16000, 400000, 40000)]
    wanted = BeatsDetector(Beats(config, weights), arrangement=PLAIN, device="cpu").outputs(clips)
    packed = BeatsDetector(Beats(config, weights), device="cuda", precision=precision)
    together = packed.outputs(clips)
    assert not packed.notes
    assert np.abs(together - wanted).max() < most
    assert np.array_equal(together, np.concatenate([packed.outputs([one]) for one in clips]))
    assert np.array_equal(together[::-1], packed.outputs(clips[::-1]))


def test_a_run_over_a_corpus(checkpoint: Path, tmp_path: Path) -> None:
    manifest = corpus(24)
    runs: list[Any] = []
    for i, settings in enumerate(({}, {"batch_items": 1}, {"workers": 1, "batch_seconds": 3.0})):
        detector = open_detector(f"beats:{checkpoint}", layers=["layer.*"])
        runs.append(detect(detector, manifest, output=tmp_path / str(i), load=clip, **settings).score)
    assert np.abs(runs[1] - runs[0]).max() < 1e-5 and np.abs(runs[2] - runs[0]).max() < 1e-5
    with np.load(tmp_path / "2" / "embeddings.npz") as kept:
        assert kept["layer.0"].shape == (24, 32) and kept["layer.2"].shape == (24, 32)


def test_the_full_size_has_the_published_number_of_parameters() -> None:
    n = sum(math.prod(shape) for shape in weight_shapes(BeatsConfig(), 527).values())
    shared = 11 * 320 * 12  # one table of relative positions stands under twelve names
    assert 90.2e6 < n - shared < 90.8e6
    network = Beats(BeatsConfig(), random_checkpoint(BeatsConfig())["model"])
    assert len(network.weights) == len(weight_shapes(BeatsConfig(), 2))


def test_buckets_are_symmetric_and_bounded() -> None:
    torch = pytest.importorskip("torch")
    distance = torch.arange(-3000, 3001)
    found = relative_buckets(distance, 320, 800)
    assert found.min() == 0 and found.max() == 319
    assert torch.equal(found[distance < 0].flip(0), found[distance > 0] - 160)


def test_checkpoints_that_do_not_fit_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    whole = torch.load(checkpoint, weights_only=True)
    headless = {**whole, "model": {k: v for k, v in whole["model"].items() if "predictor" not in k}}
    torch.save(headless, tmp_path / "headless.pt")
    with pytest.raises(UsageError, match="no classification head"):
        open_detector(f"beats:{tmp_path / 'headless.pt'}")
    embedder = open_detector(f"beats:{tmp_path / 'headless.pt'}", layers=["layer.2"])
    _, kept = embedder.with_layers([np.ones(5000, dtype=np.float32)])
    assert kept["layer.2"].shape == (1, 32)
    head = {k: v for k, v in whole["model"].items() if "predictor" in k}
    torch.save(head, tmp_path / "head.pt")
    wave = [np.ones(5000, dtype=np.float32)]
    fixed = open_detector(f"beats:{tmp_path / 'headless.pt'}", weights=tmp_path / "head.pt")
    assert np.array_equal(fixed.outputs(wave), open_detector(f"beats:{checkpoint}").outputs(wave))
    whole["model"]["encoder.layers.1.fc1.weight"] = torch.zeros(3, 3)
    torch.save(whole, tmp_path / "odd.pt")
    with pytest.raises(DataError, match=r"encoder\.layers\.1\.fc1\.weight: \(48, 32\) expected, \(3, 3\) found"):
        open_detector(f"beats:{tmp_path / 'odd.pt'}")
    torch.save({"weights": 1}, tmp_path / "other.pt")
    with pytest.raises(DataError, match="'cfg' and 'model'"):
        open_detector(f"beats:{tmp_path / 'other.pt'}")
    with pytest.raises(DataError, match="gelu"):
        BeatsConfig.of({**vars(replace(SMALL)), "activation_fn": "glu"})
