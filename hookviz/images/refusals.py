"""What a file that is no picture looks like, in one sentence for the person who chose it."""

from __future__ import annotations

_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")

_STARTS = (
    (b"%PDF", "a PDF document"),
    (b"%!PS", "a PostScript drawing"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript drawing"),
    (b"PK\x03\x04", "a ZIP archive (or a document or checkpoint stored as one)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (b"\x00\x00\x01\xba", "an MPEG video"),
    (b"\x00\x00\x01\xb3", "an MPEG video"),
    (b"OggS", "an Ogg recording"),
    (b"ID3", "an MP3 recording"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x80\x02", "a pickle (perhaps a checkpoint)"),
    (b"\x7fELF", "a program"),
    (b"\xd7\xcd\xc6\x9a", "a Windows metafile drawing"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL image"),
)

_TEXT_BYTES = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\n\r\f") | frozenset(range(0x80, 0x100))


def is_heic(prefix: bytes) -> bool:
    """Whether a file that begins with ``prefix`` is a HEIC or HEIF photograph."""
    return prefix[4:8] == b"ftyp" and prefix[8:12] in _HEIC_BRANDS


def refusal(prefix: bytes) -> str:
    """One sentence that names what a file beginning with ``prefix`` looks like, and what to do."""
    if is_heic(prefix):
        return (
            "This is a HEIC photograph; install the plug-in with 'pip install pillow-heif', or save it as JPEG or PNG."
        )
    name = looks_like(prefix)
    if name is None:
        return "This file is not an image of a known kind; save it as PNG or JPEG and choose that."
    return f"This file is {name}, not an image that can be read here; save the picture in it as PNG or JPEG."


def looks_like(prefix: bytes) -> str | None:
    """What kind of file begins with ``prefix``, with its article, or None."""
    for start, name in _STARTS:
        if prefix.startswith(start):
            return name
    if prefix[4:8] == b"ftyp":
        return "an AVIF image" if prefix[8:12] in (b"avif", b"avis") else "an MP4 or QuickTime video"
    if prefix[:4] == b"RIFF":
        return {b"AVI ": "an AVI video", b"WAVE": "a WAV recording"}.get(prefix[8:12])
    return _kind_of_text(prefix)


def _kind_of_text(prefix: bytes) -> str | None:
    text = prefix.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if b"<svg" in text:
        return "an SVG drawing"
    if text.startswith((b"<!doctype html", b"<html")) or b"<body" in text:
        return "a web page (HTML)"
    if text.startswith(b"<?xml"):
        return "an XML document"
    return "a text file" if set(prefix) <= _TEXT_BYTES else None
