"""What a sound file says about itself: format, coding, and the marks that encoders leave in its header."""

from __future__ import annotations

import io
import re
from typing import Any, Final

from hitmiss.errors import DataError
from hitmiss.io.media import need

HEAD: Final = 65_536
LONGEST: Final = 200
MARKS: Final = re.compile(rb"(?:Lavf|Lavc|LAME|Xing|libVorbis|libFLAC|Xiph\.Org|libopus|iTunes|SoX)[ -~]{0,40}")
TAGS: Final = ("title", "artist", "software", "comment", "date", "copyright")
MOST_CHUNKS: Final = 32


def sound_container(data: bytes) -> dict[str, Any]:
    """Format, coding, sample rate, channels, seconds; tags; chunks of a WAV; encoders that left their name."""
    soundfile = need("soundfile")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            seconds = round(file.frames / file.samplerate, 3)
            told = {"format": file.format, "coding": file.subtype, "sample_rate": file.samplerate}
            tags = {name: str(text)[:LONGEST] for name, text in file.copy_metadata().items() if name in TAGS}
            told |= {"channels": file.channels, "seconds": seconds, "tags": tags}
    except (soundfile.LibsndfileError, ValueError) as error:
        why = str(getattr(error, "error_string", error)).rstrip(".")
        raise DataError(f"the sound cannot be opened: {why}") from None
    found = dict.fromkeys(mark.decode("ascii") for mark in MARKS.findall(data[:HEAD]))
    return {**told, "chunks": chunks(data), "encoder_marks": list(found)[:8]}


def chunks(data: bytes) -> list[str]:
    """The names of a WAV's chunks, in order; none for other files.

    >>> chunks(b"RIFF....WAVEfmt " + (2).to_bytes(4, "little") + b"..data" + bytes(4))
    ['fmt ', 'data']
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return []
    names: list[str] = []
    at = 12
    while at + 8 <= len(data) and len(names) < MOST_CHUNKS:
        names.append(data[at : at + 4].decode("ascii", "backslashreplace"))
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return names
