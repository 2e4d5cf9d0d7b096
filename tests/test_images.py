"""What load_image and read_image make of files; the right pixels come from Pillow itself, numpy or by hand."""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageCms, ImageFile, ImageOps

from hookviz.errors import ImageError
from hookviz.images import load_image, read_image
from hookviz.images.sources import MAX_BYTES

RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)
ORIENTATION = 0x0112


def file_bytes(image: Image.Image, picture_format: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, picture_format, **options)
    return stream.getvalue()


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    levels = np.random.default_rng(7).integers(0, 256, (height, width, 4), dtype=np.uint8)
    return Image.fromarray(levels).convert(mode)


def red_blue() -> Image.Image:
    image = Image.new("RGB", (40, 20), RED)
    image.paste(BLUE, (20, 0, 40, 20))
    return image


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    return tags


def chunk(name: bytes, contents: bytes) -> bytes:
    return struct.pack(">I", len(contents)) + name + contents + struct.pack(">I", zlib.crc32(name + contents))


def png(  # the few fields of a PNG header
    width: int, height: int, depth: int, colour: int, rows: bytes, *extra: bytes
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = (chunk(b"IHDR", header), *extra, chunk(b"IDAT", rows), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def zero_png(width: int, height: int, depth: int = 1, colour: int = 0, *extra: bytes) -> bytes:
    """A PNG of zeros, made row by row so that this process stays small."""
    samples = {0: 1, 2: 3, 6: 4}[colour]
    row = bytes(1 + (width * depth * samples + 7) // 8)
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return png(width, height, depth, colour, packed, *extra)


def pixels(image: Image.Image) -> npt.NDArray[np.uint8]:
    return np.asarray(image)


def same(first: Image.Image, second: Image.Image) -> bool:
    """Whether both have the same pixels; Image's own equality compares metadata too."""
    return (first.mode, first.size, first.tobytes()) == (second.mode, second.size, second.tobytes())


def sentence(source: Any) -> str:
    with pytest.raises(ImageError) as caught:
        load_image(source)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "Traceback" not in text
    return text


# Orientation


@pytest.mark.parametrize("picture_format", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_turns_the_picture(picture_format: str, orientation: int) -> None:
    """C04: the pixels are those of ImageOps.exif_transpose."""
    contents = file_bytes(red_blue(), picture_format, exif=exif(orientation))
    right = ImageOps.exif_transpose(Image.open(io.BytesIO(contents))).convert("RGB")
    reading = read_image(contents)
    assert reading.image.size == ((40, 20) if orientation < 5 else (20, 40))
    assert same(reading.image, right)
    assert reading.original_size == reading.image.size
    turned = "It is turned upright as its EXIF orientation says."
    assert reading.notes == ((turned,) if orientation > 1 else ())


def test_orientation_six_puts_the_left_half_on_top() -> None:
    """C04: the entry's own numbers."""
    image = load_image(file_bytes(red_blue(), "PNG", exif=exif(6)))
    assert image.size == (20, 40)
    assert image.getpixel((10, 5)) == RED
    assert image.getpixel((10, 35)) == BLUE


@pytest.mark.parametrize(("picture_format", "mode"), [("PNG", "P"), ("PNG", "1"), ("PNG", "I;16"), ("JPEG", "CMYK")])
def test_orientation_of_a_picture_that_is_not_rgb(picture_format: str, mode: str) -> None:
    """C04, C05: the turn does not depend on the mode."""
    stored = red_blue().convert("L").convert(mode) if mode == "I;16" else red_blue().convert(mode)
    plain = load_image(file_bytes(stored, picture_format))
    turned = load_image(file_bytes(stored, picture_format, exif=exif(8)))
    assert same(turned, plain.transpose(Image.Transpose.ROTATE_90))


def test_a_result_is_not_turned_again() -> None:
    """C04: the upright image no longer says that it needs a turn."""
    image = load_image(file_bytes(red_blue(), "JPEG", exif=exif(6)))
    assert same(load_image(image), image)
    assert same(load_image(file_bytes(image, "PNG")), image)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")  # Pillow says so, and hookviz goes on
def test_damaged_exif_leaves_the_picture_as_it_is() -> None:
    """C04: EXIF is not worth losing the picture for."""
    contents = file_bytes(red_blue(), "PNG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff broken")
    assert same(load_image(contents), red_blue())


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_outside_one_to_eight_means_none(orientation: int) -> None:
    """C04."""
    assert same(load_image(file_bytes(red_blue(), "PNG", exif=exif(orientation))), red_blue())


# Modes


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "YCbCr", "HSV"])
def test_plain_modes_equal_pillows_conversion(mode: str) -> None:
    """C05: also as PIL images that were never a file."""
    image = noise(30, 20).convert(mode)
    assert same(load_image(image), image.convert("RGB"))


def test_one_bit_is_black_and_white() -> None:
    """C05."""
    image = Image.new("1", (2, 1))
    image.putpixel((1, 0), 1)
    assert pixels(load_image(file_bytes(image))).tolist() == [[[0, 0, 0], [255, 255, 255]]]


def test_grey_gives_three_equal_channels() -> None:
    """C05."""
    grey = noise(30, 20, "L")
    assert np.array_equal(pixels(load_image(file_bytes(grey))), np.stack([np.asarray(grey)] * 3, axis=-1))


def test_cmyk_jpeg_is_not_inverted() -> None:
    """C05: full magenta and yellow is red."""
    contents = file_bytes(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=100)
    assert load_image(contents).getpixel((8, 8)) == RED


def test_lab_comes_back_as_the_colours_it_was_made_from() -> None:
    """C05: Pillow itself refuses this conversion."""
    srgb, space = (ImageCms.ImageCmsProfile(ImageCms.createProfile(name)) for name in ("sRGB", "LAB"))
    to_lab = ImageCms.ImageCmsTransform(srgb, space, "RGB", "LAB")
    lab = to_lab.apply(Image.new("RGB", (4, 4), (200, 100, 50)))
    returned = pixels(load_image(file_bytes(lab, "TIFF")))[0, 0].astype(int)
    assert np.abs(returned - (200, 100, 50)).max() <= 3


def test_sixteen_bit_levels_are_divided_by_257() -> None:
    """C05: one rule for every 16-bit image, whatever its own range."""
    levels = np.array([[0, 128, 129, 257, 32768, 65535]], dtype=np.uint16)
    for contents in (file_bytes(Image.fromarray(levels)), file_bytes(Image.fromarray(levels), "TIFF")):
        reading = read_image(contents)
        assert pixels(reading.image)[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]
        assert reading.original_mode == "I;16"
        assert reading.notes == ("Levels 0 to 65535 are mapped to 0 to 255.",)


def test_sixteen_bit_pgm_and_big_endian_tiff_follow_the_same_rule() -> None:
    """C05: Pillow opens these as 32-bit and as I;16B."""
    pgm = b"P5 3 1 65535\n" + np.array([0, 514, 65535], dtype=">u2").tobytes()
    assert pixels(load_image(pgm))[0, :, 1].tolist() == [0, 2, 255]
    swapped = Image.frombytes("I;16B", (3, 1), np.array([0, 514, 65535], dtype=">u2").tobytes())
    assert pixels(load_image(file_bytes(swapped, "TIFF")))[0, :, 1].tolist() == [0, 2, 255]


@pytest.mark.parametrize(
    ("levels", "right", "note"),
    [
        ([0, 0.25, 1], [0, 64, 255], "Levels 0 to 1 are mapped to 0 to 255."),
        ([0, 100.4, 255], [0, 100, 255], "Levels 0 to 255 are kept, rounded."),
        ([-1, 0, 1], [0, 128, 255], "Levels -1 to 1 are mapped to 0 to 255."),
        ([0, 500, 1000], [0, 128, 255], "Levels 0 to 1000 are mapped to 0 to 255."),
        ([1000, 1000, 1000], [0, 0, 0], "Levels 1000 to 1000 are mapped to 0 to 255."),
        (
            [np.nan, np.inf, -np.inf, 0.5],
            [0, 255, 0, 128],
            "Levels 0 to 1 are mapped to 0 to 255; NaN is shown as 0, infinities as 0 and 255.",
        ),
        (
            [np.nan, -2, 2, np.inf],
            [0, 0, 255, 255],
            "Levels -2 to 2 are mapped to 0 to 255; NaN is shown as 0, infinities as 0 and 255.",
        ),
    ],
)
def test_float_levels_follow_the_stated_rule(levels: list[float], right: list[int], note: str) -> None:
    """C05: values rounded half to even, as numpy does."""
    reading = read_image(file_bytes(Image.fromarray(np.array([levels], dtype=np.float32)), "TIFF"))
    assert pixels(reading.image)[0, :, 0].tolist() == right
    assert reading.notes == (note,)


def test_only_nan_is_black() -> None:
    """C05."""
    image = load_image(Image.fromarray(np.full((2, 2), np.nan, dtype=np.float32)))
    assert not pixels(image).any()


def test_extreme_floats_do_not_overflow() -> None:
    """C05: the span of float32 does not fit float32."""
    top = float(np.finfo(np.float32).max)
    image = load_image(Image.fromarray(np.array([[-top, 0, top]], dtype=np.float32)))
    assert pixels(image)[0, :, 0].tolist() == [0, 128, 255]


def test_integer_levels_outside_bytes_are_stretched() -> None:
    """C05: 32-bit integers, here with a negative one."""
    image = Image.fromarray(np.array([[-100, 0, 100, 300]], dtype=np.int32))
    assert pixels(load_image(file_bytes(image, "TIFF")))[0, :, 2].tolist() == [0, 64, 128, 255]


def test_sixteen_bit_colour_keeps_its_high_byte() -> None:
    """C05: as Pillow reads it."""
    row = b"\x00" + struct.pack(">3H", 0xFF00, 0x8000, 0x00FF)
    assert load_image(png(1, 1, 16, 2, zlib.compress(row))).getpixel((0, 0)) == (255, 128, 0)


# Transparency


def test_transparent_pixels_are_white_whatever_they_hide() -> None:
    """C06: half transparent red is half red, half white."""
    image = Image.new("RGBA", (3, 1), (255, 0, 0, 0))
    image.putpixel((1, 0), (255, 0, 0, 255))
    image.putpixel((2, 0), (255, 0, 0, 127))
    reading = read_image(file_bytes(image))
    assert pixels(reading.image)[0].tolist() == [[255, 255, 255], [255, 0, 0], [255, 128, 128]]
    assert reading.notes == ("Transparent parts are shown over white.",)


@pytest.mark.parametrize("picture_format", ["PNG", "WEBP", "TIFF", "GIF"])
def test_every_format_with_transparency_is_laid_over_white(picture_format: str) -> None:
    """C06."""
    image = Image.new("RGBA", (8, 8), (10, 20, 30, 0))
    options = {"lossless": True} if picture_format == "WEBP" else {}
    assert load_image(file_bytes(image, picture_format, **options)).getpixel((4, 4)) == WHITE


@pytest.mark.parametrize("transparency", [0, b"\x00\xff"])
def test_palette_transparency_as_a_number_and_as_bytes(transparency: int | bytes) -> None:
    """C06: index 0 is transparent, index 1 is not."""
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((1, 0), 1)
    right = [[255, 255, 255], [200, 100, 50]]
    assert pixels(load_image(file_bytes(image, transparency=transparency)))[0].tolist() == right


def test_a_palette_with_alpha_of_its_own() -> None:
    """C06: the transparency is in the palette, not beside it."""
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255, 0, 255], "RGBA")
    image.putpixel((1, 0), 1)
    assert pixels(load_image(image))[0].tolist() == [[255, 255, 255], [0, 255, 0]]


@pytest.mark.parametrize("mode", ["LA", "PA", "La", "RGBa", "RGBA"])
def test_modes_with_alpha_equal_a_composite_over_white(mode: str) -> None:
    """C06: the right value is alpha_composite's, by way of the plain mode."""
    image = noise(30, 20, "RGBA")
    image = image.convert("LA") if mode in ("LA", "La", "PA") else image
    image = image.convert(mode)
    plain = image.convert({"La": "LA", "RGBa": "RGBA"}.get(mode, mode)).convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    assert same(load_image(image), Image.alpha_composite(white, plain).convert("RGB"))


def test_opaque_alpha_changes_nothing_and_says_nothing() -> None:
    """C06."""
    image = noise(30, 20)
    reading = read_image(file_bytes(image.convert("RGBA")))
    assert same(reading.image, image)
    assert reading.notes == ()


@pytest.mark.parametrize(
    ("depth", "colour", "row", "key"),
    [
        (1, 0, b"\x40", b"\x00\x01"),
        (2, 0, b"\x20", b"\x00\x02"),
        (4, 0, b"\x07", b"\x00\x07"),
        (8, 0, b"\x01\x02", b"\x00\x02"),
        (16, 0, b"\x01\x02\x02\x01", b"\x02\x01"),
        (8, 2, b"\x01\x02\x03\x04\x05\x06", b"\x00\x04\x00\x05\x00\x06"),
        (16, 2, b"\x10\x01\x20\x01\x30\x01\x40\x02\x50\x02\x60\x02", b"\x40\x02\x50\x02\x60\x02"),
    ],
    ids=["1 bit", "2 bits", "4 bits", "8 bits", "16 bits", "colour", "16-bit colour"],
)
def test_the_one_transparent_level_of_a_png(depth: int, colour: int, row: bytes, key: bytes) -> None:
    """C06: the right of two pixels has the level that tRNS names, at the depth of the file."""
    image = load_image(png(2, 1, depth, colour, zlib.compress(b"\x00" + row), chunk(b"tRNS", key)))
    assert image.getpixel((1, 0)) == WHITE
    assert image.getpixel((0, 0)) != WHITE


# Ordinary photographs stay bit for bit


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 30}, {"icc_profile": b"not a profile"}])
def test_an_ordinary_photograph_is_what_pillow_decodes(options: dict[str, Any]) -> None:
    """C66, C80: nothing lossy, and colour profiles are left alone."""
    contents = file_bytes(noise(123, 77), "JPEG", **options)
    reading = read_image(contents)
    assert same(reading.image, Image.open(io.BytesIO(contents)).convert("RGB"))
    assert (reading.format, reading.original_mode, reading.notes) == ("JPEG", "RGB", ())


def test_a_colour_profile_changes_no_pixel() -> None:
    """C80: a Lab profile would move every colour if it were applied."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    image = noise(20, 20)
    assert same(load_image(file_bytes(image, icc_profile=profile)), image)


def test_many_tiles_join_without_a_seam() -> None:
    """C66: larger than one tile in both directions, with alpha."""
    image = noise(1500, 1601, "RGBA")
    white = Image.new("RGBA", image.size, "white")
    assert same(load_image(image), Image.alpha_composite(white, image).convert("RGB"))


@pytest.mark.parametrize("size", [(1, 10000), (10000, 1), (1, 1), (3_000_000, 1), (1, 70_000)])
def test_thin_pictures_keep_their_shape(size: tuple[int, int]) -> None:
    image = load_image(file_bytes(noise(*size, "L")))
    assert image.size == size
    assert same(image, noise(*size, "L").convert("RGB"))


# Several frames


@pytest.mark.parametrize("picture_format", ["GIF", "PNG", "WEBP", "TIFF", "AVIF", "MPO"])
def test_the_first_frame_is_taken_and_said(picture_format: str) -> None:
    """C69."""
    frames = [Image.new("RGB", (32, 32), colour) for colour in (RED, BLUE, WHITE)]
    contents = file_bytes(frames[0], picture_format, save_all=True, append_images=frames[1:])
    reading = read_image(contents)
    assert reading.notes == ("This is the first of 3 frames.",)
    assert np.abs(pixels(reading.image).astype(int) - RED).max() <= 3
    assert same(load_image(contents), Image.open(io.BytesIO(contents)).convert("RGB"))


def test_one_frame_says_nothing() -> None:
    """C69: a GIF is not an animation for being a GIF."""
    assert read_image(file_bytes(Image.new("RGB", (4, 4), RED), "GIF")).notes == ()


def test_an_animation_cut_after_its_first_frame_still_shows_it() -> None:
    """C68, C69."""
    frames = [noise(64, 64).quantize(), noise(64, 64).rotate(90).quantize()]
    contents = file_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:])
    image = load_image(contents[: len(contents) * 3 // 4])
    assert same(image, Image.open(io.BytesIO(contents)).convert("RGB"))


def test_an_animation_in_a_large_file_is_not_counted() -> None:
    """C69: counting millions of frames would take minutes."""
    frames = [Image.new("L", (2, 2), level) for level in (0, 255)]
    contents = file_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert read_image(contents + bytes(17 * 2**20)).notes == ("This is the first of several frames.",)


def test_hundreds_of_pages_are_counted_up_to_a_bound() -> None:
    """C69."""
    pages = [Image.new("1", (1, 1))] * 502
    contents = file_bytes(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    assert read_image(contents).notes == ("This is the first of at least 500 frames.",)


# Sources


def test_every_kind_of_source_gives_the_same_picture(tmp_path: Path) -> None:
    """C71, C72: upper case, a lying or no extension, odd names."""
    contents = file_bytes(red_blue(), "JPEG")
    right = Image.open(io.BytesIO(contents)).convert("RGB")
    for name in ("IMG_0001.JPG", "a.jpeg.png", "noextension", "x.png:$y.png", "größe 猫.gif", "-rf.tiff"):
        path = tmp_path / name
        path.write_bytes(contents)
        assert same(load_image(path), right)
        assert same(load_image(str(path)), right)
        with path.open("rb") as stream:
            assert same(load_image(stream), right)
    for source in (contents, bytearray(contents), memoryview(contents), io.BytesIO(contents)):
        assert same(load_image(source), right)


def test_a_stream_is_read_whole_from_any_position_and_left_there() -> None:
    """C71: the second reader sees the same picture."""
    stream = io.BytesIO(file_bytes(red_blue()))
    stream.seek(17)
    assert all(same(load_image(stream), red_blue()) for _ in range(5))
    assert stream.tell() == 17
    assert not stream.closed


def test_a_file_is_left_open_where_it_was(tmp_path: Path) -> None:
    """C71: the same for a real file, which has no getvalue."""
    path = tmp_path / "a.png"
    path.write_bytes(file_bytes(red_blue()))
    with path.open("rb") as stream:
        stream.seek(0, io.SEEK_END)
        end = stream.tell()
        assert all(same(load_image(stream), red_blue()) for _ in range(3))
        assert stream.tell() == end
        assert not stream.closed


def test_a_pipe_is_read_to_its_end() -> None:
    """C71: neither seekable nor in one piece."""
    reading_end, writing_end = os.pipe()
    with os.fdopen(reading_end, "rb", buffering=0) as reader:
        with os.fdopen(writing_end, "wb") as writer:
            writer.write(file_bytes(red_blue()))
        assert same(load_image(reader), red_blue())


def test_a_pil_image_is_left_as_it_was() -> None:
    image = Image.open(io.BytesIO(file_bytes(red_blue(), "JPEG", exif=exif(6))))
    assert load_image(image).size == (20, 40)
    assert image.size == (40, 20)
    assert image.getexif()[ORIENTATION] == 6


def test_the_result_shares_nothing_with_the_source() -> None:
    source = red_blue()
    load_image(source).putpixel((0, 0), WHITE)
    assert source.getpixel((0, 0)) == RED


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"", "empty"),
        (io.BytesIO(), "empty"),
        (None, "NoneType"),
        (7, "int"),
        (np.zeros((4, 4, 3)), "ndarray"),
        ("https://example.org/cat.jpg", "download"),
        ("data:image/png;base64,AAAA", "download"),
        ("/no/such/picture.png", "no file"),
        ("", "folder"),
        (".", "folder"),
        ("a\0b.png", "cannot be opened"),
        ("x" * 5000, "cannot be opened"),
        (io.StringIO("text"), "binary mode"),
        ("/dev/zero", "regular file"),
    ],
    ids=range(14),
)
def test_what_is_no_file_is_refused_in_one_sentence(source: Any, words: str) -> None:
    """C67, C68, C71."""
    assert words in sentence(source)


def test_closed_and_text_files_are_refused(tmp_path: Path) -> None:
    """C71."""
    path = tmp_path / "a.txt"
    path.write_text("hello")
    with path.open() as text:
        assert "binary mode" in sentence(text)
    closed = io.BytesIO(b"x")
    closed.close()
    assert "open it again" in sentence(closed)


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"x")

    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "permissions" in sentence(path)


def test_an_endless_file_is_read_only_up_to_the_limit() -> None:
    class Endless:
        given = 0

        def read(self, size: int) -> bytes:
            self.given += size
            return bytes(size)

    endless = Endless()
    assert "256 MB" in sentence(endless)
    assert endless.given <= MAX_BYTES + 2**20


# What is no picture


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "a PostScript drawing"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "an SVG drawing"),
        (b'<?xml version="1.0"?>\n<!-- made -->\n<svg/>', "an SVG drawing"),
        (b"\xef\xbb\xbf  <!DOCTYPE html><html></html>", "a web page"),
        (b'{"a": 1}', "a text file"),
        ("größer als".encode(), "a text file"),
        (b"x", "a text file"),
        (b"PK\x03\x04" + bytes(60), "a ZIP archive"),
        (b"\x1f\x8b\x08" + bytes(60), "a gzip archive"),
        (b"\x00\x00\x00\x18ftypmp42" + bytes(60), "an MP4 or QuickTime video"),
        (b"\x00\x00\x00\x14ftypqt  " + bytes(60), "an MP4 or QuickTime video"),
        (b"\x1aE\xdf\xa3" + bytes(60), "a Matroska or WebM video"),
        (b"RIFF\x00\x00\x00\x00AVI LIST" + bytes(60), "an AVI video"),
        (b"\x00\x00\x01\xba" + bytes(60), "an MPEG video"),
        (b"\x93NUMPY\x01\x00" + bytes(60), "a NumPy array"),
        (b"\x00\x00\x00\x18ftypheic" + bytes(60), "HEIC"),
        (b"\x00\x00\x00\x18ftypmif1" + bytes(60), "HEIC"),
        (b"\xff\x0a" + bytes(60), "a JPEG XL image"),
        (bytes(5000), "not an image of a known kind"),
        (b"\x89PNG\r\n\x1a\n", "PNG file is cut short or damaged"),
        (b"\xff\xd8\xff", "JPEG file is cut short or damaged"),
        (b"GIF89a", "GIF file is cut short or damaged"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "WEBP file is cut short or damaged"),
    ],
)
def test_a_file_that_is_no_picture_is_named(contents: bytes, words: str, tmp_path: Path) -> None:
    """C68, C70, C72: decided by content, under the name of a picture."""
    path = tmp_path / "picture.png"
    path.write_bytes(contents)
    assert words in sentence(path)


def test_heic_works_once_a_plugin_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """C70: the plug-in is registered when it is installed; here a stand-in that decodes to one red pixel."""

    class HeifFile(ImageFile.ImageFile):
        format = "HEIF"

        def _open(self) -> None:
            self._mode, self._size, self.tile = "RGB", (1, 1), []
            self.im = Image.new("RGB", (1, 1), RED).im

    def register() -> None:
        Image.register_open("HEIF", HeifFile, lambda prefix: prefix[4:12] == b"ftypheic")

    plugin = ModuleType("pillow_heif")
    plugin.register_heif_opener = register  # type: ignore[attr-defined]  # a module made by hand
    monkeypatch.setitem(sys.modules, "pillow_heif", plugin)
    monkeypatch.setattr(Image, "ID", list(Image.ID))
    monkeypatch.setattr(Image, "OPEN", dict(Image.OPEN))
    reading = read_image(b"\x00\x00\x00\x18ftypheic" + bytes(60))
    assert (reading.format, reading.image.getpixel((0, 0))) == ("HEIF", RED)


# Truncated and damaged files


@pytest.mark.parametrize("picture_format", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF", "JPEG2000"])
def test_half_a_file_is_refused(picture_format: str) -> None:
    """C68: the flag that would let it pass stays as it was."""
    contents = file_bytes(noise(64, 64), picture_format)
    assert "cut short or damaged" in sentence(contents[: len(contents) // 2])
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


FORMATS: dict[str, dict[str, Any]] = {
    "JPEG": {"exif": exif(6)},
    "PNG": {"exif": exif(6)},
    "GIF": {"save_all": True, "append_images": [noise(24, 24).rotate(90)]},
    "WEBP": {"save_all": True, "append_images": [noise(24, 24).rotate(90)]},
    "TIFF": {"save_all": True, "append_images": [noise(24, 24)]},
    "BMP": {},
    "PPM": {},
    "TGA": {},
    "ICO": {"sizes": [(16, 16), (24, 24)]},
    "MPO": {"save_all": True, "append_images": [noise(24, 24)]},
    "JPEG2000": {},
    "AVIF": {},
    "QOI": {},
    "PCX": {},
    "SGI": {},
    "DDS": {},
    "ICNS": {},
}


def mutated(contents: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(contents)
    match chance.randrange(4):
        case 0:
            del damaged[chance.randrange(len(damaged)) :]
        case 1:
            start = chance.randrange(len(damaged))
            del damaged[start : start + chance.randrange(1, 9)]
        case 2:
            damaged[chance.randrange(min(64, len(damaged)))] = chance.randrange(256)
        case _:
            for _ in range(chance.randrange(1, 12)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


@pytest.mark.parametrize("picture_format", FORMATS)
def test_damage_gives_a_picture_or_one_sentence(picture_format: str) -> None:
    """C68: nothing but ImageError, and RGB where a picture comes out."""
    contents = file_bytes(noise(24, 24), picture_format, **FORMATS[picture_format])
    assert load_image(contents).mode == "RGB"
    chance = random.Random(picture_format)  # noqa: S311  # seeded damage, no secret
    sentences = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Pillow's remarks about damaged EXIF
        for _ in range(300):
            try:
                assert load_image(mutated(contents, chance)).mode == "RGB"
            except ImageError as error:
                sentences.add(str(error))
    assert sentences
    assert all(text.endswith(".") for text in sentences)


def test_random_bytes_are_refused() -> None:
    """C68."""
    chance = random.Random(3)  # noqa: S311  # seeded damage, no secret
    for length in (1, 2, 10, 100, 5000):
        for _ in range(40):
            assert sentence(chance.randbytes(length))


# Bombs


def test_too_many_pixels_are_refused_with_the_limit() -> None:
    """C67: the entry's 20000 × 20000 PNG."""
    text = sentence(zero_png(20000, 20000))
    assert "20000 × 20000 = 400,000,000 pixels" in text
    assert "150,000,000" in text


@pytest.mark.parametrize(
    "contents",
    [
        b"GIF89a" + struct.pack("<HH", 65535, 65535) + bytes(20),
        b"P5 100000 100000 255\n",
        b"BM" + bytes(12) + struct.pack("<IiiHHI", 40, 60000, 60000, 1, 8, 0) + bytes(20),
    ],
    ids=["GIF", "PPM", "BMP"],
)
def test_a_bomb_of_another_format_is_refused(contents: bytes) -> None:
    """C67: before anything is allocated."""
    assert "pixels, and the limit is" in sentence(contents)


def test_more_text_than_pixels_is_refused() -> None:
    """C67: a compressed comment that would become 100 MB."""
    text = chunk(b"zTXt", b"Comment\x00\x00" + zlib.compress(bytes(100 * 2**20)))
    assert "more text" in sentence(png(1, 1, 8, 0, zlib.compress(b"\x00\x00"), text))


def test_no_process_wide_setting_of_pillow_or_warnings_changes() -> None:
    """C67, C68: other users of Pillow in this process see what they saw before; no bomb warning is given."""
    before = (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_image(zero_png(10000, 9500))
    assert caught == []
    assert (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)) == before


def test_above_the_kept_size_a_picture_is_halved_by_means_of_four() -> None:
    """C67: the right value is the mean of each 2 × 2 block, also over white; odd sides keep their last column."""
    image = Image.new("LA", (8193, 8193), (0, 255))
    image.paste(noise(600, 600, "RGBA").convert("LA"), (7593, 7593))
    corner = image.crop((7592, 7592, 8193, 8193)).convert("RGBA")
    white = Image.new("RGBA", corner.size, "white")
    reading = read_image(image)
    assert reading.image.size == (4097, 4097)
    assert same(
        reading.image.crop((3796, 3796, 4097, 4097)), Image.alpha_composite(white, corner).convert("RGB").reduce(2)
    )
    assert reading.original_size == (8193, 8193)
    assert reading.notes[-1] == "It is reduced from 8193 × 8193 to 4097 × 4097 pixels."


def test_a_large_jpeg_is_halved_while_it_is_decoded() -> None:
    """C67: turned as well, with its upright size in the note."""
    contents = file_bytes(Image.linear_gradient("L").resize((9001, 8001)), "JPEG", exif=exif(6))
    reading = read_image(contents)
    assert reading.image.size == (4001, 4501)
    assert reading.notes[-1] == "It is reduced from 8001 × 9001 to 4001 × 4501 pixels."
    assert reading.original_size == (8001, 9001)


MEASURE = """
import pathlib, re, sys, time
from hookviz.images import read_image

def kilobytes(what):
    # Not ru_maxrss: a child starts with its parent's.
    return int(re.search(what + r":\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

before = kilobytes("VmRSS")
start = time.perf_counter()
reading = read_image(sys.argv[1])
print(kilobytes("VmHWM") - before, time.perf_counter() - start, *reading.image.size)
"""


def measure(path: Path) -> tuple[float, float, tuple[int, int]]:
    """Memory in MB that reading the file takes at most, beyond what importing hookviz does, and seconds."""
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    peak, seconds, width, height = done.stdout.split()
    return int(peak) * 1024 / 1e6, float(seconds), (int(width), int(height))


@pytest.mark.parametrize(
    ("size", "depth", "colour"),
    [((12000, 12000), 1, 0), ((15000, 10000), 8, 6)],
    ids=["C67's 12000 x 12000", "the largest RGBA"],
)
def test_the_largest_pictures_stay_within_a_gigabyte(
    size: tuple[int, int], depth: int, colour: int, tmp_path: Path
) -> None:
    """C67: both turned upright too, which costs a second copy; no warning on the console."""
    path = tmp_path / "large.png"
    path.write_bytes(zero_png(*size, depth, colour, chunk(b"eXIf", exif(6).tobytes()[6:])))
    peak, seconds, halved = measure(path)
    assert halved == (size[1] // 2, size[0] // 2)
    assert peak < 1000
    assert seconds < 30
