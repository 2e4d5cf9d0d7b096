from __future__ import annotations

from pathlib import Path

import pytest

from hookviz.cli.checked_images import named_items
from hookviz.cli.console import Console
from hookviz.cli.image_labels import LabelsError, labelled, read_labels
from tests.cli.checked import copy_sample


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two threes and an eight in folders named after them."""
    monkeypatch.chdir(tmp_path)
    copy_sample("digit_3", tmp_path / "val" / "three" / "a.png")
    copy_sample("digit_3", tmp_path / "val" / "three" / "b.png")
    copy_sample("digit_8", tmp_path / "val" / "eight" / "a.png")
    return tmp_path


def labels(choice: str | None, *words: str) -> dict[str, str | int | None]:
    items = labelled(named_items(words), choice, words, Console())
    return {item.name: item.label for item in items}


class TestByFolder:
    def test_images_have_the_name_of_the_folder_they_lie_in(self) -> None:
        assert labels("folders", "val") == {"eight/a.png": "eight", "three/a.png": "three", "three/b.png": "three"}
        expected = {"val/eight/a.png": "eight", "val/three/a.png": "three", "val/three/b.png": "three"}
        assert labels("folders", "val/eight", "val/three") == expected
        assert labels("folders", *expected) == expected

    def test_so_has_one_folder_or_image_alone(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert labels("folders", "val/three/") == {"a.png": "three", "b.png": "three"}
        assert labels("folders", "val/eight/a.png") == {"a.png": "eight"}
        monkeypatch.chdir(folder / "val" / "eight")
        assert labels("folders", ".") == labels("folders", "a.png") == {"a.png": "eight"}

    def test_a_picture_beside_the_folders_of_classes_has_none(self, folder: Path) -> None:
        copy_sample("digit_8", folder / "val" / "overview.png")
        assert labels("folders", "val")["overview.png"] is None


class TestByFile:
    def test_names_are_as_the_report_has_them_or_the_last_part_of_it(self, folder: Path) -> None:
        (folder / "labels.csv").write_text("three/a.png,3\nb.png, three \neight/a.png,8\n")
        assert labels("labels.csv", "val") == {"eight/a.png": "8", "three/a.png": "3", "three/b.png": "three"}

    def test_a_heading_a_mark_in_front_and_empty_lines_do_no_harm(self, folder: Path) -> None:
        (folder / "labels.csv").write_bytes(
            'name,label\r\n\r\na.png, "cat, tabby"\r\n,\r\n"with, comma.png",dog\r\n'.encode("utf-8-sig")
        )
        expected = {"name": "label", "a.png": "cat, tabby", "with, comma.png": "dog"}
        assert read_labels(folder / "labels.csv") == expected

    def test_images_without_a_label_are_counted(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "labels.csv").write_text("b.png,3\n")
        assert labels("labels.csv", "val") == {"eight/a.png": None, "three/a.png": None, "three/b.png": "3"}
        assert capsys.readouterr().err == (
            "hookviz: without a label in labels.csv: 2 of 3 images, such as eight/a.png.\n"
        )

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (
                b"a.png,cat\nb.png\n",
                "'labels.csv' has no name and label in line 2; write name,label, with quotes around what has a comma: "
                'cat.png,"cat, tabby".',
            ),
            (
                b"a.png,cat, tabby\n",
                "'labels.csv' has no name and label in line 1; write name,label, with quotes around what has a comma: "
                'cat.png,"cat, tabby".',
            ),
            (b"a.png,\n", None),
            (
                b"a.png,cat\na.png,cat\na.png,dog\n",
                "'labels.csv' labels 'a.png' twice, and differently; leave one of the lines.",
            ),
            (b"a.png,\xff\n", "The labels 'labels.csv' are not UTF-8 text; save them again as UTF-8."),
            (
                b"c.png,cat\n",
                "'labels.csv' has no label for any of the images; write lines such as eight/a.png,cat.",
            ),
            (b"", "'labels.csv' has no label for any of the images; write lines such as eight/a.png,cat."),
        ],
    )
    def test_what_gives_no_labels_is_one_sentence(self, content: bytes, sentence: str | None, folder: Path) -> None:
        (folder / "labels.csv").write_bytes(content)
        with pytest.raises(LabelsError) as told:
            labels("labels.csv", "val")
        assert sentence is None or str(told.value) == sentence

    def test_a_file_that_is_not_there_is_one_sentence(self) -> None:
        with pytest.raises(LabelsError, match=r"The labels 'no\.csv' cannot be read: No such file or directory\."):
            labels("no.csv", "val")


def test_without_a_choice_there_are_none() -> None:
    assert set(labels(None, "val").values()) == {None}
