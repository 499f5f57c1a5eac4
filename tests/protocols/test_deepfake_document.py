"""Every code example of the BEATs document, word for word, with torch. `eval` is the document's name for our module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.protocols import deepfake_audio

pytestmark = pytest.mark.extras
SOURCE = Path(__file__).resolve().parents[2].parent / "shared" / "sources" / "002_b79c7f066c0f6558.txt"

WORKFLOW = """\
def evaluate_beats_model(model, dataloader, device="cuda", ...):
    all_labels = []
    all_scores = []
    
    for batch_data in dataloader:
        # Process batch
        audio_input, labels = batch_data
        
        # Forward pass through BEATs
        batch_output = model(audio_input)
        
        # Extract scores using BEATs-specific extraction
        batch_scores = extract_scores_from_beats_output(batch_output)
        
        # Store results
        all_labels.extend(labels)
        all_scores.extend(batch_scores)
    
    return np.array(all_labels), np.array(all_scores)
"""  # noqa: W293
MULTI_CLASS = """\
# Output: [fake_score, real_score, ...] per sample
probs = torch.softmax(model_output, dim=1)
scores = probs[:, 1]  # Take positive class probability (real/genuine)
"""
SINGLE = """\
# Output: single logit per sample
scores = torch.sigmoid(model_output.squeeze())  # Convert to probability
"""
LENGTH = """\
if cut_length is not None:
    if audio_input.shape[-1] < cut_length:
        # Pad by repeating audio
        repeats = int(cut_length / audio_input.shape[-1]) + 1
        audio_input = audio_input.repeat(1, repeats)[:, :cut_length]
    elif audio_input.shape[-1] > cut_length:
        # Truncate audio
        audio_input = audio_input[:, :cut_length]
"""
AUGMENTATION = """\
if augmentations is not None:
    if not manipulation_on_real:
        # Only apply to fake samples
        fake_mask = labels == 0
        if fake_mask.any():
            audio_input[fake_mask] = augmentations(audio_input[fake_mask])
    else:
        # Apply to all samples
        audio_input = augmentations(audio_input)
"""
AGGREGATION = """\
# Collect all scores and labels
all_labels = []
all_scores = []

for batch in dataloader:
    batch_labels, batch_scores = process_batch(batch)
    all_labels.extend(batch_labels)
    all_scores.extend(batch_scores)

# Convert to numpy arrays
labels = np.array(all_labels)  # Shape: (N,)
scores = np.array(all_scores)  # Shape: (N,)
"""
METRICS = """\
# Separate scores by class
real_scores = scores[labels == 1]    # Shape: (N_real,)
fake_scores = scores[labels == 0]    # Shape: (N_fake,)

# Compute EER
eer, eer_threshold = compute_eer(real_scores, fake_scores)

# Compute FAR/FRR at threshold
far, frr = compute_far_frr(labels, scores, eer_threshold)
"""
DEVICE = """\
# Move to GPU for computation
audio_input = audio_input.to(device)
labels = labels.to(device)

# Move back to CPU for numpy conversion
scores = scores.cpu().numpy()
"""
BASIC = """\
from eval import evaluate_beats_model, compute_all_metrics

# Evaluate BEATs model
labels, scores = evaluate_beats_model(model, dataloader)

# Compute metrics
results = compute_all_metrics(labels, scores)
print(f"EER: {results['EER']:.4f}")
"""
CUSTOM = """\
# Use custom threshold instead of EER threshold
results = compute_all_metrics(labels, scores, threshold=0.5)
"""
FROM_FILE = """\
from eval import evaluate_from_file

# Load and evaluate from file
results = evaluate_from_file("scores.txt", plot_results=True)
"""
BLOCKS = (
    WORKFLOW, MULTI_CLASS, SINGLE, LENGTH, AUGMENTATION, AGGREGATION, METRICS, DEVICE, BASIC, CUSTOM, FROM_FILE,
)  # fmt: skip


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def world(torch: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples take for granted: a model, a loader, numpy, torch and our functions."""
    monkeypatch.setitem(sys.modules, "eval", deepfake_audio)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(320, 8), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    data = torch.utils.data.TensorDataset(torch.randn(50, 320), torch.arange(50) % 2)
    names = {name: getattr(deepfake_audio, name) for name in dir(deepfake_audio) if name.startswith("compute")}
    extract = deepfake_audio.extract_scores_from_beats_output
    return {
        "torch": torch, "np": np, "model": model, "extract_scores_from_beats_output": extract, **names,
        "dataloader": torch.utils.data.DataLoader(data, batch_size=8),
    }  # fmt: skip


def test_these_are_the_documents_own_words() -> None:
    if not SOURCE.is_file():
        pytest.skip("the folder shared/sources is not here")
    parts = SOURCE.read_text(encoding="utf-8").split("```python\n")[1:]
    assert [part.split("```")[0] for part in parts] == list(BLOCKS)


def test_basic_custom_and_from_file(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(BASIC, world)
    seen = capsys.readouterr()
    assert seen.out == f"EER: {world['results']['EER']:.4f}\n"
    if not world["torch"].cuda.is_available():
        assert "'cuda' was asked for and is not here; using the CPU" in seen.err
    exec(METRICS, world)
    assert (world["far"] + world["frr"]) / 2 == pytest.approx(world["eer"])
    exec(CUSTOM, world)
    assert world["results"]["threshold"] == 0.5
    monkeypatch.chdir(tmp_path)
    deepfake_audio.save_score_file("scores.txt", world["labels"], world["scores"])
    exec(FROM_FILE, world)
    assert world["results"]["EER"] == world["eer"] and (tmp_path / "scores_plots" / "det.png").is_file()


def test_the_workflow_gives_what_ours_gives(world: dict[str, Any]) -> None:
    exec(WORKFLOW.replace(", ...)", ", **_)"), world)  # the document's own ellipsis is no Python
    world["model"].eval()
    labels, scores = world["evaluate_beats_model"](world["model"], world["dataloader"])
    ours = deepfake_audio.evaluate_beats_model(world["model"], world["dataloader"], device="cpu")
    assert np.array_equal(labels, ours[0]) and scores == pytest.approx(ours[1], abs=1e-6)


def test_extraction_is_the_documented_arithmetic(world: dict[str, Any], torch: Any) -> None:
    for columns, block in ((2, MULTI_CLASS), (1, SINGLE)):
        world["model_output"] = 3 * torch.randn(16, columns)
        exec(block, world)
        ours = deepfake_audio.extract_scores_from_beats_output(world["model_output"])
        assert ours == pytest.approx(world["scores"].numpy(), abs=1e-6)


@pytest.mark.parametrize("cut_length", [None, 100, 320, 1000])
@pytest.mark.parametrize("manipulation_on_real", [True, False])
def test_length_and_augmentation_are_the_documented_ones(
    world: dict[str, Any], torch: Any, cut_length: int | None, manipulation_on_real: bool
) -> None:
    seen: list[Any] = []

    class Looking(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            seen.append(x.clone())
            return x.sum(dim=1, keepdim=True)

    audio, labels = torch.randn(6, 320), torch.arange(6) % 2
    world |= {"audio_input": audio.clone(), "labels": labels, "cut_length": cut_length, "device": "cpu"}
    world |= {"augmentations": lambda x: -x, "manipulation_on_real": manipulation_on_real, "scores": torch.zeros(1)}
    exec(DEVICE, world)
    exec(AUGMENTATION, world)
    exec(LENGTH, world)
    deepfake_audio.evaluate_beats_model(
        Looking(), [(audio, labels)], device="cpu", augmentations=lambda x: -x,
        manipulation_on_real=manipulation_on_real, cut_length=cut_length, outputs="logit",
    )  # fmt: skip
    assert torch.equal(seen[0], world["audio_input"])


def test_aggregation(world: dict[str, Any]) -> None:
    world["process_batch"] = lambda batch: deepfake_audio.evaluate_beats_model(world["model"], [batch], device="cpu")
    exec(AGGREGATION, world)
    labels, scores = deepfake_audio.evaluate_beats_model(world["model"], world["dataloader"], device="cpu")
    assert np.array_equal(world["labels"], labels) and world["scores"] == pytest.approx(scores, abs=1e-6)


def test_the_model_is_left_as_it_was(world: dict[str, Any], torch: Any) -> None:
    model = world["model"].train()
    model[1].eval()
    deepfake_audio.evaluate_beats_model(model, world["dataloader"], device="cpu")
    assert [m.training for m in model.modules()] == [True, True, False, True, True]
    assert torch.is_grad_enabled() and all(p.requires_grad and p.grad is None for p in model.parameters())


def test_dropout_is_off(world: dict[str, Any]) -> None:
    first, second = (deepfake_audio.evaluate_beats_model(world["model"], world["dataloader"])[1] for _ in range(2))
    assert np.array_equal(first, second)
