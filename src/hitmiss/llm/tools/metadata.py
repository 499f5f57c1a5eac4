"""Metadata: format, size, EXIF and text that a file carries about itself. It is easily forged, and easily stripped."""

from __future__ import annotations

from typing import Any, Final

from hitmiss.llm.pixels import open_picture

LONGEST: Final = 200
POINTERS: Final = {0x8769: "Exif", 0x8825: "GPS"}
CONTAINERS: Final = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp", "icc_profile", "photoshop")


def metadata(data: bytes) -> dict[str, Any]:
    """Format, size and mode; EXIF tags by name; text chunks and comments, cut at 200 characters; what else is there."""
    image = open_picture(data)
    info = image.info
    texts = {str(k): _short(v) for k, v in info.items() if isinstance(v, str | bytes) and k not in CONTAINERS}
    return {
        "format": image.format,
        "width": image.width,
        "height": image.height,
        "mode": image.mode,
        "exif": exif_tags(image),
        "texts": texts,
        "has_colour_profile": "icc_profile" in info,
        "has_xmp": any(name in info for name in ("xmp", "XML:com.adobe.xmp")),
    }


def exif_tags(image: Any) -> dict[str, str]:
    """The EXIF tags by name, those of the camera (Exif) and of the place (GPS) with their group before them."""
    from PIL import ExifTags

    try:
        main = image.getexif()
        found = {ExifTags.TAGS.get(t, str(t)): _short(v) for t, v in main.items() if t not in POINTERS}
        for pointer, group in POINTERS.items():
            names = ExifTags.GPSTAGS if group == "GPS" else ExifTags.TAGS
            inner = main.get_ifd(pointer) if pointer in main else {}
            found |= {f"{group}.{names.get(t, t)}": _short(v) for t, v in inner.items()}
    except Exception as error:  # broken EXIF is a finding, not a failure
        return {"broken": _short(str(error) or type(error).__name__)}
    return found


def _short(value: Any) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    text = text.rstrip("\x00")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
