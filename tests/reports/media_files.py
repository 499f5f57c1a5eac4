"""Files that a report may show, and files that try to be more than that."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=20'><script>window.pwned=21</script></svg>"
HTML = b"<!doctype html><script>window.pwned=22</script>"
TAIL = b"<script>window.pwned=23</script>"


def tone(hertz: float = 440.0, seconds: float = 1.0, rate: int = 16000) -> bytes:
    """A sine as a stereo WAV, written by the standard library."""
    samples = (0.4 * 32767 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype("<i2")
    packed = io.BytesIO()
    with wave.open(packed, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(samples, 2).tobytes())
    return packed.getvalue()


def picture(kind: str = "PNG", size: tuple[int, int] = (640, 320)) -> bytes:
    """A red image with a blue left half."""
    image = Image.new("RGB", size, (200, 20, 20))
    image.paste((20, 20, 200), (0, 0, size[0] // 2, size[1]))
    packed = io.BytesIO()
    image.save(packed, kind)
    return packed.getvalue()


def bomb(width: int = 60_000, height: int = 60_000) -> bytes:
    """A PNG of some bytes that would unfold to ten gigabytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


HOSTILE_FILES = {
    "drawing.svg": SVG,
    "drawing.png": SVG,
    "page.jpg": HTML,
    "page.wav": HTML,
    "empty.wav": b"",
    "cut.png": picture()[:200],
    "cut.wav": tone()[:30],
    "riff.wav": b"RIFF\x24\x00\x00\x00WAVEjunkjunkjunk",
    "bomb.png": bomb(),
    "film.gif": b"GIF89a" + b"\0" * 40,
    "list.m3u8": b"#EXTM3U\nhttps://example.org/beacon.wav\n",
    "words.txt": b"words",
}
"""Names and contents that must never be shown."""


def folder_of_files(folder: Path) -> Path:
    """A folder with good files, hostile ones, and links that lead out of it."""
    (folder / "media").mkdir(parents=True)
    for name, content in HOSTILE_FILES.items():
        (folder / "media" / name).write_bytes(content)
    (folder / "media" / "good.png").write_bytes(picture() + TAIL)
    (folder / "media" / "good.wav").write_bytes(tone())
    (folder / "secret.png").write_bytes(picture())
    (folder / "media" / "link.png").symlink_to(folder / "secret.png")
    return folder / "media"
