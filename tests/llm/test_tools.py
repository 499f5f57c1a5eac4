"""The tools against independent computations: Pillow's own operators, plain loops, bytes taken apart by hand."""

from __future__ import annotations

import io
import math
import statistics
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageStat

from hitmiss.core.errors import UnknownName
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.tools import BY_KIND, call_tool
from hitmiss.llm.tools.pictures import error_levels, metadata, noise_residual, power_spectrum, quantisation, spectrum

PICTURE_TOOLS = [tool.name for tool in BY_KIND["image"]]
RNG = np.random.default_rng(5)
NOISY = RNG.integers(0, 256, size=(24, 32, 3), dtype=np.uint8)
SMOOTH = np.stack([np.add.outer(np.arange(24) * 4, np.arange(32) * 3)] * 3, axis=2).astype(np.uint8)


def png(pixels: np.ndarray, **more: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", **more)  # type: ignore[arg-type]
    return buffer.getvalue()


def jpeg(pixels: np.ndarray, **more: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", **more)  # type: ignore[arg-type]
    return buffer.getvalue()


@pytest.mark.parametrize("pixels", [NOISY, SMOOTH], ids=["noisy", "smooth"])
def test_error_levels_are_those_of_pillow(pixels: np.ndarray) -> None:
    image = Image.fromarray(pixels)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    bands = ImageChops.difference(image, Image.open(buffer)).split()
    largest = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    found = error_levels(png(pixels))
    assert found["mean"] == pytest.approx(ImageStat.Stat(largest).mean[0], rel=1e-5)
    assert found["maximum"] == ImageStat.Stat(largest).extrema[0][1]
    block = ImageStat.Stat(largest.crop((0, 0, 4, 3))).mean[0]
    assert found["block_means"][0][0] == pytest.approx(block, abs=0.005)
    assert len(found["block_means"]) == 8 and all(len(row) == 8 for row in found["block_means"])


def test_the_spectrum_is_the_sum_of_waves() -> None:
    values = RNG.normal(size=(6, 5))
    frequency, power = power_spectrum(values)
    window = [
        [math.sin(math.pi * (r + 1) / 7) ** 2 * math.sin(math.pi * (c + 1) / 6) ** 2 for c in range(5)]
        for r in range(6)
    ]
    centred = [[(values[r][c] - values.mean()) * window[r][c] for c in range(5)] for r in range(6)]
    for k in range(6):
        for m in range(5):
            turns = [[2 * math.pi * (k * r / 6 + m * c / 5) for c in range(5)] for r in range(6)]
            real = sum(centred[r][c] * math.cos(turns[r][c]) for r in range(6) for c in range(5))
            imaginary = sum(centred[r][c] * math.sin(turns[r][c]) for r in range(6) for c in range(5))
            assert power[k][m] == pytest.approx((real**2 + imaginary**2) / 30, abs=1e-12)
    assert frequency[1][0] == pytest.approx(1 / 6) and frequency[5][1] == pytest.approx(math.hypot(1 / 6, 1 / 5))


def test_a_period_stands_out_in_the_spectrum() -> None:
    plain = np.clip(128 + RNG.normal(scale=8, size=(64, 64, 1)).repeat(3, axis=2), 0, 255)
    striped = np.clip(plain + 20 * (np.arange(64) % 4 == 0)[None, :, None], 0, 255)
    found = [spectrum(png(p.astype(np.uint8))) for p in (plain, striped)]
    assert found[1]["peak_over_median"] > 20 * found[0]["peak_over_median"]
    # white noise has the same power at every frequency: the share above a quarter is the share of the area there
    assert found[0]["share_above_quarter"] == pytest.approx(1 - 0.25**2 / 0.5**2, abs=0.05)
    assert abs(found[0]["slope"]) < 0.3


def test_the_residual_is_the_picture_minus_its_median() -> None:
    grey = RNG.integers(0, 256, size=(9, 7), dtype=np.uint8)
    found = noise_residual(png(np.stack([grey] * 3, axis=2)), grid=1)
    padded = np.pad(grey.astype(float), 1, mode="symmetric")  # scipy's reflect is numpy's symmetric
    left = [
        grey[r, c] - statistics.median(padded[r : r + 3, c : c + 3].ravel().tolist())
        for r in range(9)
        for c in range(7)
    ]
    assert found["deviation"] == pytest.approx(statistics.pstdev(left), rel=1e-5)
    assert found["block_deviations"] == [[pytest.approx(statistics.pstdev(left), abs=5e-4)]]
    mean, sd = statistics.fmean(left), statistics.pstdev(left)
    assert found["excess_kurtosis"] == pytest.approx(
        statistics.fmean(((x - mean) / sd) ** 4 for x in left) - 3, rel=1e-5
    )
    pairs = [(left[7 * r + c], left[7 * r + c + 1]) for r in range(9) for c in range(6)]
    one, other = zip(*pairs, strict=True)
    assert found["correlation_right"] == pytest.approx(statistics.correlation(one, other), abs=1e-5)


def test_a_picture_of_one_colour_has_undefined_figures() -> None:
    flat = png(np.full((8, 8, 3), 100, dtype=np.uint8))
    assert noise_residual(flat)["excess_kurtosis"] is None and noise_residual(flat)["deviation"] == 0
    assert spectrum(flat)["share_above_quarter"] is None and spectrum(flat)["slope"] is None


def exif_by_hand(text: bytes) -> bytes:
    """A TIFF block with one tag, Software, written byte by byte."""
    entry = struct.pack("<HHII", 0x0131, 2, len(text) + 1, 26)
    return b"Exif\x00\x00" + b"II*\x00" + struct.pack("<IH", 8, 1) + entry + struct.pack("<I", 0) + text + b"\x00"


def test_metadata_reads_what_was_written_by_hand() -> None:
    found = metadata(jpeg(SMOOTH, exif=exif_by_hand(b"Camera 1.0"), comment=b"fine <b>day</b>"))
    assert found["format"] == "JPEG" and (found["width"], found["height"]) == (32, 24)
    assert found["exif"] == {"Software": "Camera 1.0"}
    assert found["texts"]["comment"] == "fine <b>day</b>"
    chunk = b"tEXtprompt\x00" + b"x" * 300
    length = struct.pack(">I", len(chunk) - 4)
    data = png(SMOOTH)
    written = data[:33] + length + chunk + struct.pack(">I", zlib.crc32(chunk)) + data[33:]
    assert metadata(written)["texts"]["prompt"] == "x" * 200 + "… (300 characters)"
    assert metadata(png(SMOOTH))["exif"] == {}


ZIGZAG = sorted(((r, c) for r in range(8) for c in range(8)), key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1]))


def tables_by_hand(data: bytes) -> list[list[int]]:
    """The DQT segments, taken apart by hand and put into rows."""
    at, tables = 2, []
    while data[at + 1] != 0xDA:
        length = struct.unpack(">H", data[at + 2 : at + 4])[0]
        if data[at + 1] == 0xDB:
            segment = data[at + 4 : at + 2 + length]
            while segment:
                values, table = segment[1:65], [0] * 64
                for (r, c), value in zip(ZIGZAG, values, strict=True):
                    table[8 * r + c] = value
                tables.append(table)
                segment = segment[65:]
        at += 2 + length
    return tables


@given(st.integers(5, 100))
def test_quantisation_tables_and_quality(quality: int) -> None:
    data = jpeg(NOISY, quality=quality, subsampling=0)
    found = quantisation(data)
    assert found["tables"] == tables_by_hand(data)
    assert found["nearest_libjpeg_quality"] == quality and found["is_standard"] and found["mean_distance"] == 0
    assert found["subsampling"] == "4:4:4"


def test_only_jpeg_has_tables() -> None:
    assert quantisation(png(NOISY)) == {
        "applies": False,
        "reason": "the file is PNG; only JPEG has quantisation tables",
    }


@pytest.mark.parametrize("name", sorted(PICTURE_TOOLS))
def test_broken_pictures_are_a_result(name: str) -> None:
    whole = jpeg(NOISY)
    for data in (b"", b"no picture", whole[:40], b"\x89PNG\r\n\x1a\n"):
        found = call_tool(name, data)
        assert "error" in found.result and "picture" in found.result["error"]


def test_a_bomb_is_refused_before_it_unfolds() -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    for side in (8_000, 12_000, 60_000):  # ours, Pillow's warning, Pillow's error
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
        bomb = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\x00" * 1000)) + chunk(b"IEND", b"")
        assert "60,000,000" in call_tool("noise_residual", bomb).result["error"]


def test_unknown_tools_are_named() -> None:
    with pytest.raises(UnknownName, match="metadata"):
        call_tool("metadat", b"")


class TestCache:
    def test_a_hit_is_what_was_computed(self, tmp_path: Path) -> None:
        cache = ToolCache(tmp_path)
        for name in PICTURE_TOOLS:
            first, second = (call_tool(name, jpeg(NOISY), cache) for _ in range(2))
            assert (first.cached, second.cached) == (False, True)
            assert second.result == first.result == call_tool(name, jpeg(NOISY)).result
        assert not call_tool("metadata", jpeg(SMOOTH), cache).cached

    def test_other_parameters_are_another_result(self, tmp_path: Path) -> None:
        cache = ToolCache(tmp_path)
        cache.put(b"x", "ela", {"quality": 90}, {"mean": 1.0})
        assert cache.get(b"x", "ela", {"quality": 90}) == {"mean": 1.0}
        assert cache.get(b"x", "ela", {"quality": 91}) is None
        assert cache.get(b"y", "ela", {"quality": 90}) is None and cache.get(b"x", "fft", {"quality": 90}) is None

    def test_a_damaged_file_is_no_result(self, tmp_path: Path) -> None:
        cache = ToolCache(tmp_path)
        cache.put(b"x", "ela", {}, {"mean": 1.0})
        (path,) = tmp_path.rglob("*.json")
        whole = path.read_bytes()
        for end in range(len(whole)):
            path.write_bytes(whole[:end])
            assert cache.get(b"x", "ela", {}) is None
        path.write_bytes(whole.replace(b"1.0", b"2.0"))
        assert cache.get(b"x", "ela", {}) is None
        path.write_bytes(whole)
        assert cache.get(b"x", "ela", {}) == {"mean": 1.0}

    def test_failures_are_not_kept(self, tmp_path: Path) -> None:
        cache = ToolCache(tmp_path)
        assert [call_tool("metadata", b"broken", cache).cached for _ in range(2)] == [False, False]

    def test_a_cache_that_cannot_be_written_costs_nothing_else(self, tmp_path: Path) -> None:
        blocked = tmp_path / "file"
        blocked.write_text("in the way")
        assert "width" in call_tool("metadata", jpeg(NOISY), ToolCache(blocked)).result
