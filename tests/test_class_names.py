from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from hookviz.class_names import ClassNamesError, numbered_class_names, read_class_names

THREE = ("cat", "grey wolf", "Käfer, groß")

TEXTS = {
    "one a line": "cat\ngrey wolf\nKäfer, groß\n",
    "no last newline": "cat\ngrey wolf\nKäfer, groß",
    "Windows": "cat\r\ngrey wolf\r\nKäfer, groß\r\n",
    "old Mac": "cat\rgrey wolf\rKäfer, groß",
    "byte order mark": "\ufeffcat\ngrey wolf\nKäfer, groß\n",
    "blank lines and spaces": "\n  cat\t\n\n\ngrey wolf \n Käfer, groß\n\n",
    "space": "0 cat\n1 grey wolf\n2 Käfer, groß",
    "colon": "0: cat\n1: grey wolf\n2: Käfer, groß",
    "comma": "0,cat\n1,grey wolf\n2,Käfer, groß",
    "quoted": '0,"cat"\n1,grey wolf\n2,"Käfer, groß"',
    "tab": "0\tcat\n1\tgrey wolf\n2\tKäfer, groß",
    "padded indices": "00 cat\n01 grey wolf\n02 Käfer, groß",
    "any order": "2: Käfer, groß\n0: cat\n1: grey wolf",
    "JSON list": json.dumps(THREE),
    "JSON list over lines": json.dumps(THREE, indent=2, ensure_ascii=False),
    "JSON by index": '{"1": "grey wolf", "0": "cat", "2": "Käfer, groß"}',
    "JSON by name": '{"grey wolf": 1, "cat": 0, "Käfer, groß": 2}',
    "JSON with a mark": '\ufeff  {"1": "grey wolf", "0": "cat", "2": "Käfer, groß"}\r\n',
    "Keras": '{"0": ["n01", "cat"], "1": ["n02", "grey wolf"], "2": ["n03", "Käfer, groß"]}',
    "configuration": '{"layers": 3, "id2label": {"0": "cat", "1": "grey wolf", "2": "Käfer, groß"}}',
}


@pytest.mark.parametrize("kind", TEXTS)
def test_names_come_in_the_order_of_their_indices(kind: str, tmp_path: Path) -> None:
    contents = TEXTS[kind].encode()
    (tmp_path / "names.dat").write_bytes(contents)
    for source in (
        contents,
        bytearray(contents),
        io.BytesIO(contents),
        tmp_path / "names.dat",
        str(tmp_path / "names.dat"),
    ):
        assert read_class_names(source, expected=3) == THREE


def test_an_upload_is_read_again_on_every_rerun() -> None:
    """C71: the second reading starts at the beginning."""
    upload = io.BytesIO(b"cat\ndog\n")
    assert [read_class_names(upload) for _ in range(2)] == [("cat", "dog")] * 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("2012 coupe\n2012 van\n2007 van", ("2012 coupe", "2012 van", "2007 van")),
        ("0\n1\n2\n", ("0", "1", "2")),
        ("7up\n0 calories", ("7up", "0 calories")),
        ("crane\ncrane", ("crane", "crane")),
        ('{"0": 1, "1": 0}', ("1", "0")),
        ("only", ("only",)),
        ("10: k\n" + "\n".join(f"{index}: {chr(97 + index)}" for index in range(10)), tuple("abcdefghijk")),
    ],
)
def test_numbers_that_are_part_of_a_name_stay(text: str, names: tuple[str, ...]) -> None:
    assert read_class_names(text.encode()) == names


def refuse(contents: bytes, sentence: str, expected: int | None = None) -> None:
    with pytest.raises(ClassNamesError) as caught:
        read_class_names(contents, expected=expected)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ["0 a\n0 b", "0: a\n0: b", '{"0": "a", "0": "b"}', '{"a": 0, "b": 0}', "0,a\n00,b"])
def test_an_index_given_twice_is_refused(text: str) -> None:
    refuse(text.encode(), "The class names file gives index 0 twice; give each class one line.")


@pytest.mark.parametrize(
    "text", ["0 a\n2 b", "0: a\n2: b", '{"0": "a", "2": "b"}', '{"a": 0, "b": 2}', '{"a": 0, "b": -1}']
)
def test_an_index_left_out_is_refused(text: str) -> None:
    refuse(text.encode(), "The class names file has 2 names but none for index 1; number them from 0 to 1.")


@pytest.mark.parametrize("text", ["1 a\n2 b", "1: a\n2: b", '{"1": "a", "2": "b"}', '{"a": 1, "b": 2}'])
def test_counting_from_one_is_refused(text: str) -> None:
    refuse(text.encode(), "The class names file has 2 names but none for index 0; number them from 0 to 1.")


@pytest.mark.parametrize(("count", "expected"), [(2, 3), (3, 2), (1000, 10)])
def test_another_number_of_names_is_refused(count: int, expected: int) -> None:
    refuse(
        "\n".join(f"name {index}" for index in range(count)).encode(),
        f"The class names file has {count} names, but the network has {expected} classes; give one for each.",
        expected,
    )


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"", "has no names in it; write one name a line."),
        (b" \r\n\n", "has no names in it; write one name a line."),
        (b"[]", "has no names in it; write one name a line."),
        (b"{}", "has no names in it; write one name a line."),
        ("Käfer".encode("latin-1"), "is not UTF-8 text (byte 1 is 0xe4); save it again as UTF-8."),
        ("cat\ndog".encode("utf-16"), "is not UTF-8 text (byte 0 is 0xff); save it again as UTF-8."),
        ("cat\ndog".encode("utf-16-le"), "is not UTF-8 text (it has zero bytes); save it again as UTF-8."),
        (b'["cat",\n "dog"', "is not valid JSON (line 2: Expecting ',' delimiter); correct it there."),
        (b'["cat", 3]', "has no name for class 1, but 3; write one."),
        (b'["cat", " "]', 'has no name for class 1, but " "; write one.'),
        (b'["cat", null]', "has no name for class 1, but null; write one."),
        (b'{"0": {"name": "cat"}}', 'has no name for class 0, but {"name": "cat"}; write one.'),
        (b'{"0": true, "1": false}', "has no name for class 0, but true; write one."),
        (
            b'{"cat": "dog"}',
            """has 'cat' where an index should be; write {"0": "name"}, {"name": 0} or a list of names.""",
        ),
        (b"[" * 100_000, "is nested too deeply; give a plain list of names."),
        (bytes(16 * 2**20 + 1), "has more than 16 MB; give a list of names."),
    ],
)
def test_what_gives_no_names_is_one_sentence(contents: bytes, sentence: str) -> None:
    refuse(contents, f"The class names file {sentence}")


def test_paths_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases: list[tuple[str | Path, str]] = [
        (tmp_path / "absent.txt", r"There is no file '.*absent\.txt'; check the path\."),
        (tmp_path, "'.*' is not a file; give the path of a list of names\\."),
        (tmp_path / "pipe", "'.*' is not a file; give the path of a list of names\\."),
        ("a\0b", "The file .* cannot be opened; check its permissions\\."),
    ]
    for path, words in cases:
        with pytest.raises(ClassNamesError, match=f"^{words}$"):
            read_class_names(path)
    for source in (io.StringIO("cat"), 3, None):
        with pytest.raises(
            ClassNamesError,
            match=r"^Class names are read from a path, bytes, or a file opened in binary mode; give one\.$",
        ):
            read_class_names(source)  # type: ignore[arg-type]  # on purpose


def test_classes_without_names_are_numbered() -> None:
    assert numbered_class_names(3) == ("class 0", "class 1", "class 2")
