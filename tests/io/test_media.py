"""Sound files: what comes out has the right rate, length and level; what is wrong with a file is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.media.audio import Clip, length_of, load_audio, need, resample, save_audio

soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")
RATE = 16000


def tone(seconds: float = 0.5, hertz: float = 440.0, rate: int = RATE) -> Clip:
    t = np.arange(int(seconds * rate)) / rate
    return (0.4 * np.sin(2 * np.pi * hertz * t)).astype(np.float32)


@pytest.mark.parametrize("ending", ["wav", "flac"])
def test_sixteen_bits_come_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    save_audio(path, tone())
    back = load_audio(path)
    assert back.dtype == np.float32 and back.shape == tone().shape
    assert np.abs(back - tone()).max() <= 1 / 32768


@pytest.mark.parametrize("ending", ["mp3", "ogg", "aiff"])
def test_other_formats_of_soundfile(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    soundfile.write(str(path), tone(1.0), RATE)
    back = load_audio(path)
    assert abs(len(back) - RATE) <= 0.15 * RATE
    assert loudest(back) == pytest.approx(440, abs=2)


def test_what_soundfile_cannot_read_goes_to_pyav(tmp_path: Path) -> None:
    path = tmp_path / "a.m4a"
    write_m4a(path, tone(1.0))
    with pytest.raises(soundfile.LibsndfileError):
        soundfile.read(str(path))
    back = load_audio(path)
    assert abs(len(back) - RATE) <= 2048
    assert loudest(back) == pytest.approx(440, abs=2)


def test_channels_become_their_mean(tmp_path: Path) -> None:
    path = tmp_path / "two.wav"
    soundfile.write(str(path), np.stack([tone(), -0.5 * tone()], axis=1), RATE, subtype="FLOAT")
    assert load_audio(path) == pytest.approx(0.25 * tone(), abs=1e-6)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
def test_any_rate_becomes_the_wanted_one(tmp_path: Path, rate: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(str(path), tone(1.0, rate=rate), rate, subtype="FLOAT")
    back = load_audio(path)
    assert abs(len(back) - RATE) <= 1
    middle = slice(2000, -2000)
    assert back[middle] == pytest.approx(tone(1.0)[: len(back)][middle], abs=2e-3)  # nothing is delayed


def test_the_same_rate_is_untouched() -> None:
    assert resample(tone(), RATE, RATE) is not None and resample(tone(), RATE, RATE) == pytest.approx(tone(), abs=0)


def refused(path: Path, **options: float) -> str:
    with pytest.raises(DataError) as caught:
        load_audio(path, **options)  # type: ignore[arg-type]
    (fault,) = caught.value.faults
    assert fault.file == path.name and str(path.parent) not in str(caught.value)
    return fault.message


def test_a_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "nowhere.flac")


def test_a_file_that_is_no_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_text("this is no sound, whatever its name says\n" * 20)
    assert "cannot be decoded" in refused(path)


def test_an_empty_file_and_a_file_without_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"")
    assert "cannot be decoded" in refused(path)
    soundfile.write(str(path), np.zeros(0), RATE)
    assert "no samples" in refused(path)


def test_samples_that_are_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    bad = tone()
    bad[17], bad[18] = np.nan, np.inf
    soundfile.write(str(path), bad, RATE, subtype="FLOAT")
    assert "2 samples are NaN or infinite, the first at 17" in refused(path)


def test_a_bomb_is_not_unfolded(tmp_path: Path) -> None:
    path = tmp_path / "bomb.flac"
    save_audio(path, np.zeros(RATE * 600, dtype=np.float32))
    assert path.stat().st_size < 200_000  # ten minutes of silence
    assert "longer than 30 seconds" in refused(path, max_seconds=30)
    assert len(load_audio(path, max_seconds=601)) == RATE * 600


def test_a_long_film_is_cut_off_too(tmp_path: Path) -> None:
    path = tmp_path / "a.m4a"
    write_m4a(path, tone(3.0))
    assert "longer than 1 seconds" in refused(path, max_seconds=1)


def test_a_playlist_opens_no_other_file(tmp_path: Path) -> None:
    save_audio(tmp_path / "secret.wav", tone())
    for name, text in {
        "a.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.wav\n#EXT-X-ENDLIST\n",
        "a.ffconcat": "ffconcat version 1.0\nfile secret.wav\n",
    }.items():
        (tmp_path / name).write_text(text)
        assert "cannot be decoded" in refused(tmp_path / name)


@pytest.mark.parametrize("ending", ["flac", "wav", "mp3"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_torn_file_is_a_failure_and_no_score(tmp_path: Path, ending: str, share: float) -> None:
    whole = tmp_path / f"whole.{ending}"
    noise = np.random.default_rng(0).normal(0, 0.1, 2 * RATE).astype(np.float32)
    soundfile.write(str(whole), noise, RATE)
    data = whole.read_bytes()
    torn = tmp_path / f"torn.{ending}"
    torn.write_bytes(data[: int(share * len(data))])
    with pytest.raises(DataError) as refused:
        load_audio(torn)
    assert refused.value.faults[0].file == torn.name and refused.value.code == "bad-audio"
    assert len(load_audio(whole)) >= 2 * RATE


def test_a_damaged_middle_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "damaged.flac"
    soundfile.write(str(path), np.random.default_rng(0).normal(0, 0.1, 2 * RATE).astype(np.float32), RATE)
    data = bytearray(path.read_bytes())
    middle = len(data) * 3 // 4
    data[middle : middle + 2000] = bytes(2000)
    path.write_bytes(bytes(data))
    with pytest.raises(DataError) as refused:
        load_audio(path)
    assert refused.value.code == "bad-audio"


def test_the_first_seconds_alone_are_decoded_and_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "long.flac"
    soundfile.write(str(path), np.random.default_rng(0).normal(0, 0.1, 20 * 24000).astype(np.float32), 24000)
    whole, start = load_audio(path), load_audio(path, first_seconds=2.0)
    assert len(start) < 3 * RATE and np.abs(start[: 2 * RATE] - whole[: 2 * RATE]).max() < 1e-6
    assert length_of(path, RATE) == 20 * RATE


def loudest(x: Clip) -> float:
    """The frequency of the strongest component."""
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)), 1 << 17))
    return float(np.argmax(spectrum)) * RATE / (1 << 17)


def write_m4a(path: Path, clip: Clip) -> None:
    av = need("av")
    with av.open(str(path), "w", format="ipod") as container:
        stream = container.add_stream("aac", rate=RATE, layout="mono")
        frame = av.AudioFrame.from_ndarray(clip[None], format="fltp", layout="mono")
        frame.sample_rate = RATE
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
