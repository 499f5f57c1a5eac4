"""Pictures to networks: brought to their size and scale, from a folder per class, in flat memory."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import read
from hitmiss.io.manifest import read_manifest
from hitmiss.media.image import SCALES, PictureInput

Image = pytest.importorskip("PIL.Image")

NETWORK = """
import torch

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(3, 2)
        self.head.weight.data = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        self.head.bias.data.zero_()

    def forward(self, x):
        assert x.dtype == torch.float32 and x.shape[1:] == (3, 32, 32), x.shape
        return self.head(x.mean(dim=(2, 3)))

def plain():
    return Network()

def of_timm():
    made = Network()
    made.pretrained_cfg = {
        "input_size": (3, 32, 32), "crop_pct": 0.875, "interpolation": "bicubic", "mean": (0.5,) * 3, "std": (0.5,) * 3,
    }
    return made
"""


def pictures(folder: Path, n: int = 6, size: tuple[int, int] = (60, 40)) -> dict[str, np.ndarray]:
    rng, made = np.random.default_rng(0), {}
    for at in range(n):
        name = f"{'real' if at % 2 else 'fake'}/sub/{at}.png"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        made[name] = np.broadcast_to(rng.integers(0, 256, (1, 1, 3)), (size[1], size[0], 3)).astype(np.uint8)
        Image.fromarray(made[name]).save(folder / name)
    return made


def test_the_middle_of_a_picture_in_the_order_and_scale_of_the_network() -> None:
    picture = np.zeros((40, 60, 3), dtype=np.uint8)
    picture[10:30, 20:40] = (255, 128, 0)  # fills the middle half of the height
    found = PictureInput(crop=20, resize=40, mean=(0.0,) * 3, deviation=(1.0,) * 3)(picture)
    assert found.shape == (3, 20, 20) and found.dtype == np.float32
    assert np.allclose(found[0], 1.0) and np.allclose(found[1], 128 / 255) and not found[2].any()
    turned = PictureInput.of("crop=20, resize=40, order=bgr, scale=imagenet")(picture)
    mean, deviation = SCALES["imagenet"]
    assert np.allclose(turned[2], (1.0 - mean[0]) / deviation[0]) and np.allclose(turned[0], -mean[2] / deviation[2])
    assert PictureInput.of("crop=10, scale=raw")(picture).max() <= 255.5
    tall = PictureInput(crop=20)(np.zeros((90, 30, 3), dtype=np.uint8))
    assert tall.shape == (3, 20, 20)
    for text in ("crop=a", "crop=300, resize=200"):
        with pytest.raises(UsageError):
            PictureInput.of(text)
    with pytest.raises(UnknownName):
        PictureInput.of("corp=200")


def test_a_folder_per_class_is_a_manifest(tmp_path: Path) -> None:
    pictures(tmp_path / "data")
    (tmp_path / "data" / ".hidden").mkdir()
    (tmp_path / "data" / "real" / ".DS_Store").write_text("no")
    manifest = read_manifest(tmp_path / "data", options=ReadSpec(positive="real"))
    assert manifest.items[0] == "fake/sub/0.png" and len(manifest) == 6 and manifest.positive == "real"
    assert manifest.frame["label"].to_list() == ["fake"] * 3 + ["real"] * 3
    (tmp_path / "none").mkdir()
    with pytest.raises(UsageError) as error:
        read_manifest(tmp_path / "none")
    assert error.value.code == "no-classes"


@pytest.mark.extras
def test_torch_and_timm_models_get_pictures_as_they_take_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    made = pictures(tmp_path / "data")
    (tmp_path / "net.py").write_text(NETWORK)
    words = ["detect", "--data", str(tmp_path / "data"), "--input", "image", "--device", "cpu", "--check", "0"]
    words += ["--positive", "real"]
    asked = ["--picture", "resize=36, crop=32, scale=half", "-o", str(tmp_path / "asked")]
    assert run([*words, "--detector", f"{tmp_path}/net.py:plain", *asked]) == 0
    assert run([*words, "--detector", f"{tmp_path}/net.py:of_timm", "-o", str(tmp_path / "timm")]) == 0
    for name in ("asked", "timm"):
        frame = read(str(tmp_path / name)).frame.sort("item")
        colours = np.array([made[item][0, 0] for item in frame["item"]]) / 255.0
        wanted = (colours[:, 2] - colours[:, 0]) / 0.5
        assert np.allclose(frame["score"].to_numpy(), wanted, atol=1e-5)
    capsys.readouterr()
    assert run([*words, "--detector", f"{tmp_path}/net.py:plain", "-o", str(tmp_path / "none")]) == 2
    assert "--picture" in capsys.readouterr().err


def test_sixteen_bits_are_scaled_and_pictures_are_turned_upright(tmp_path: Path) -> None:
    deep = np.random.default_rng(0).integers(0, 65536, (30, 40)).astype(np.uint16)
    turned = np.random.default_rng(1).integers(0, 256, (30, 40, 3)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: to be shown turned clockwise by a quarter
    for label in ("real", "fake"):
        (tmp_path / "data" / label).mkdir(parents=True)
    Image.fromarray(deep).save(tmp_path / "data" / "real" / "deep.png")
    Image.fromarray(turned).save(tmp_path / "data" / "fake" / "turned.png", exif=exif)
    (tmp_path / "top.py").write_text("def top(batch):\n    return batch[:, 0].mean(axis=(1, 2))\n")
    words = ["detect", "--data", str(tmp_path / "data"), "--input", "image", "--outputs", "logit", "--check", "0"]
    words += ["--positive", "real"]
    assert run([*words, "--detector", f"{tmp_path}/top.py:top", "-o", str(tmp_path / "run")]) == 0
    frame = read(str(tmp_path / "run")).frame
    found = dict(zip(frame["item"], frame["score"], strict=True))
    assert found["real/deep.png"] == pytest.approx((deep[0] / 257.0).mean(), abs=0.5)
    assert found["fake/turned.png"] == pytest.approx(np.rot90(turned, -1)[0].mean(), abs=1e-4)


MEMORY = """
import resource, sys
from hitmiss.cli.main import run
code = run(["detect", "--positive", "real", "--data", sys.argv[1], "--detector", sys.argv[2], "--input", "image", "--picture", "crop=224",
            "--outputs", "logit", "--check", "0", "-o", sys.argv[3]])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "mean.py").write_text("def mean(batch):\n    return batch.mean(axis=(1, 2, 3))\n")
    photo = np.random.default_rng(0).integers(0, 256, (1500, 2000, 3)).astype(np.uint8)
    peaks = []
    for n in (8, 48):
        folder = tmp_path / str(n)
        for label in ("real", "fake"):
            (folder / label).mkdir(parents=True)
        Image.fromarray(photo).save(folder / "real" / "0.jpg", quality=50)
        for at in range(1, n):
            (folder / ("real" if at % 2 else "fake") / f"{at}.jpg").hardlink_to(folder / "real" / "0.jpg")
        words = [sys.executable, "-c", MEMORY, str(folder), f"{tmp_path}/mean.py:mean", f"{tmp_path}/run{n}"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        code, peak = map(int, done.stdout.split()[-2:])
        assert code == 0
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 40 * 1024  # KiB; 40 pictures of 9 MB and 600 KB each as the network takes them


@pytest.mark.extras
def test_a_pretrained_network_of_javascript_takes_the_five_documented_lines(tmp_path: Path) -> None:
    """HITMISS_NPM is a folder in which the packages that docs/detect.md names are installed; weights are never ours."""
    place = os.environ.get("HITMISS_NPM")
    if place is None or shutil.which("node") is None:
        pytest.skip("set HITMISS_NPM to a folder with the npm packages of docs/detect.md")
    text = (Path(__file__).parents[2] / "docs" / "detect.md").read_text(encoding="utf-8")
    lines = text.split("```js\n")[1].split("```")[0]
    assert len(lines.splitlines()) <= 5
    (tmp_path / "node_modules").symlink_to(Path(place) / "node_modules")
    (tmp_path / "score.cjs").write_text(lines)
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    for label in ("real", "fake"):
        (tmp_path / "faces" / label).mkdir(parents=True)
        Image.fromarray(pixels if label == "real" else pixels // 4).save(tmp_path / "faces" / label / "a.png")
    done = subprocess.run(
        [sys.executable, "-m", "hitmiss", "detect", "--detector", "program:node score.cjs", "--data", "faces", "--input",
         "image", "--outputs", "probability", "--higher", "real", "--positive", "real", "--negative", "fake", "-o", "run"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scores = read(str(tmp_path / "run")).score
    given = {"id": 0, "shape": pixels.shape, "data": base64.b64encode(pixels.tobytes()).decode()}
    alone = subprocess.run(
        ["node", "score.cjs"], cwd=tmp_path, input=json.dumps(given) + "\n", capture_output=True, text=True, check=True
    )
    wanted = json.loads(alone.stdout)["output"]
    assert 0 < wanted < 1 and np.abs(scores - np.log(wanted / (1 - wanted))).min() < 1e-6 < np.ptp(scores)
