from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save as save_safetensors
from torch import Tensor, nn

from hookviz.models.checkpoints import CheckpointError, read_checkpoint
from hookviz.models.checkpoints import sources as checkpoint_sources

STATE = {"conv.weight": torch.arange(12.0).reshape(3, 4), "conv.bias": torch.tensor([1.5, float("nan"), -2.0])}


def saved(stored: Any, *, legacy: bool = False, protocol: int = 2) -> bytes:
    stream = io.BytesIO()
    torch.save(stored, stream, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    return stream.getvalue()


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    return set(found) == set(expected) and all(
        found[name].dtype == value.dtype and torch.equal(found[name].nan_to_num(7), value.nan_to_num(7))
        for name, value in expected.items()
    )


def refused(contents: bytes, words: str) -> None:
    """The whole of the message is one sentence, and ``words`` are in it."""
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(contents)
    sentence = str(caught.value)
    assert words in sentence
    assert sentence.startswith("The checkpoint")
    assert sentence.endswith(".")
    assert "\n" not in sentence


FILES: dict[str, Callable[[], bytes]] = {
    "torch.save": lambda: saved(STATE),
    "torch.save before 1.6": lambda: saved(STATE, legacy=True),
    "safetensors": lambda: save_safetensors(STATE),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("suffix", [".pth", ".bin", ".safetensors", ".txt"])
def test_the_content_decides_and_not_the_extension(kind: str, suffix: str, tmp_path: Path) -> None:
    """C72: a file is what its bytes are, whatever its name ends with."""
    path = tmp_path / f"own{suffix}"
    path.write_bytes(FILES[kind]())
    for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes())):
        assert same(read_checkpoint(source), STATE)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_from_its_start_and_left_where_it_was(kind: str, tmp_path: Path) -> None:
    """C71: an upload is read once more on every rerun."""
    contents = FILES[kind]()
    (tmp_path / "own").write_bytes(contents)
    with (tmp_path / "own").open("rb") as on_disk:
        for stream in (io.BytesIO(contents), on_disk):
            for _ in range(2):
                stream.seek(5)
                assert same(read_checkpoint(stream), STATE)
                assert stream.tell() == 5


def test_a_pipe_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as into:
        into.write(saved(STATE))
    with os.fdopen(reading, "rb") as stream:
        assert same(read_checkpoint(stream), STATE)


class RunsCode:
    """What a hostile file would hold: unpickling it makes the file ``ran``."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("echo code > ran",)


def zipped(records: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, contents in records.items():
            archive.writestr(name, contents)
    return stream.getvalue()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "in a zip": lambda: saved({**STATE, "x": RunsCode()}),
    "inside a state dict": lambda: saved({"state_dict": {**STATE, "x": [RunsCode()]}}),
    "in data.pkl of a zip by hand": lambda: zipped(
        {"archive/data.pkl": pickle.dumps(RunsCode(), 2), "archive/version": b"3\n"}
    ),
    "before torch 1.6": lambda: saved({**STATE, "x": RunsCode()}, legacy=True),
    **{f"bare pickle {number}": lambda number=number: pickle.dumps(RunsCode(), number) for number in range(6)},  # type: ignore[misc]  # the default binds the number
    "zip with protocol 4": lambda: saved({"x": RunsCode()}, protocol=4),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_code_in_a_file_is_named_and_does_not_run(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    contents = HOSTILE[kind]()
    refused(contents, "system, which could run code, so nothing in it was loaded; save tensors alone")
    assert not (tmp_path / "ran").exists()
    pickle.loads(pickle.dumps(RunsCode(), 2))
    assert (tmp_path / "ran").exists()  # so this payload would have worked


def test_no_variable_of_the_environment_lets_code_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    refused(HOSTILE["in a zip"](), "which could run code")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code")
def test_a_whole_model_is_refused_with_what_to_save_instead(legacy: bool) -> None:
    refused(
        saved(nn.Sequential(nn.Linear(2, 3)), legacy=legacy),
        "holds a whole model (torch.nn.modules.container.Sequential), which loads by running code; "
        "save its values alone with torch.save(model.state_dict(), path).",
    )


@pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated
def test_a_torchscript_program_is_refused() -> None:
    stream = io.BytesIO()
    torch.jit.save(torch.jit.script(nn.Linear(2, 3)), stream)
    refused(stream.getvalue(), "is a TorchScript program, which would run code; save its values alone with torch.save")


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_harmless_tensors_in_another_protocol_say_how_to_save_them() -> None:
    refused(saved(STATE, protocol=4), "not in torch.save's usual protocol; save it again with torch.save")


@pytest.mark.parametrize("record", ["archive/data.pkl", "archive/data/0", "archive/extra"])
def test_a_zip_bomb_is_refused_by_its_directory(record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C67: 64 MB of zeros in 64 kB; neither zipfile nor torch may unpack any of it."""
    bomb = zipped({"archive/data.pkl": b"", record: bytes(64 * 2**20)}, zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("unpacked"))
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("loaded"))
    refused(bomb, "MB to 64.0 MB, and at most 4 times its size and 4 GB are read;")


def test_an_archive_whose_directory_is_endless_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """C67: every entry of a directory becomes an object, so a directory is bounded too."""
    many = zipped({f"archive/{number:0200d}": b"" for number in range(35_000)})
    refused(many, "could not be read, since it is cut short or damaged")


def test_a_compressed_copy_of_an_ordinary_checkpoint_is_read() -> None:
    with zipfile.ZipFile(io.BytesIO(saved(STATE))) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    assert same(read_checkpoint(zipped(records, zipfile.ZIP_DEFLATED)), STATE)


def test_a_tensor_larger_than_its_record_is_refused() -> None:
    """Its values would be read from beyond the file's memory."""
    with zipfile.ZipFile(io.BytesIO(saved({"w": torch.zeros(4)}))) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    records["archive/data.pkl"] = records["archive/data.pkl"].replace(b"K\x04", b"K\x40")
    refused(zipped(records), "is cut short or damaged")


def test_an_old_file_that_declares_a_gigantic_tensor_is_refused() -> None:
    contents = saved({"w": torch.zeros(4)}, legacy=True)
    gigantic = contents.replace(b"K\x04N", b"\x8a\x07" + (2**50).to_bytes(7, "little") + b"N", 1)
    assert gigantic != contents
    refused(gigantic, "asks for more memory than there is")


@pytest.mark.parametrize("kind", FILES)
def test_a_file_cut_anywhere_is_one_sentence(kind: str) -> None:
    """C68: sixty lengths from none to all but one byte."""
    contents = FILES[kind]()
    for length in [*range(1, len(contents), max(1, len(contents) // 60)), 9, len(contents) - 1]:
        refused(contents[:length], "The checkpoint ")
    refused(contents[: len(contents) * 3 // 4], "is cut short or damaged; copy or download it again.")
    refused(b"", "is empty (0 bytes)")


@pytest.mark.parametrize("header", [2**63, 2**40, 10_000])
def test_a_safetensors_header_longer_than_its_file_is_refused(header: int) -> None:
    contents = header.to_bytes(8, "little") + b'{"a":{}}'
    refused(contents, f"it has 16 bytes, and its header alone should have {header};")


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]},
        {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
        {"dtype": "Q9", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
    ],
)
def test_a_safetensors_header_that_does_not_fit_its_data_is_refused(entry: dict[str, object]) -> None:
    header = json.dumps({"a": entry}).encode()
    refused(len(header).to_bytes(8, "little") + header + bytes(4), "is cut short or damaged")


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"<!DOCTYPE html><title>Not found</title>", "is a web page; download the file itself."),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "is a Git LFS pointer"),
        (b"\x89HDF\r\n\x1a\n" + bytes(50), "is an HDF5 file"),
        (b"\x1f\x8b\x08" + bytes(50), "is a gzip archive"),
        (zipped({"a.txt": b"text"}), "is a ZIP archive, but not one of torch.save"),
        (b"cat\ndog\n", "is neither safetensors nor a file of torch.save"),
        (bytes(64), "is neither safetensors nor a file of torch.save"),
        (saved(torch.zeros(3)), "is not a state dict; save model.state_dict()."),
        (saved([torch.zeros(3)]), "is not a state dict; save model.state_dict()."),
        (saved({"epoch": 3}), "is not a state dict; save model.state_dict()."),
        (saved({}), "is not a state dict; save model.state_dict()."),
        (saved({"w": torch.eye(2).to_sparse()}), "stores w as a sparse, quantized"),
        (saved({"w": torch.zeros(2, device="meta")}), "stores w as a sparse, quantized"),
    ],
)
def test_another_kind_of_file_is_named(contents: bytes, words: str) -> None:
    refused(contents, words)


def test_a_file_too_large_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_sources, "MAX_BYTES", 100)
    refused(saved(STATE), "GB; save the model's state_dict() alone, without its optimizer.")


def test_paths_that_cannot_be_opened_are_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases: list[tuple[str | Path, str]] = [
        (tmp_path / "absent.pth", r"There is no checkpoint '.*absent\.pth'; check the path\."),
        (tmp_path, "'.*' is not a file; give the path of a checkpoint\\."),
        (tmp_path / "pipe", "'.*' is not a file; give the path of a checkpoint\\."),
        ("a\0b", "The checkpoint .* cannot be opened; check its permissions\\."),
    ]
    for path, words in cases:
        with pytest.raises(CheckpointError, match=f"^{words}$"):
            read_checkpoint(path)
    for source in (io.StringIO("text"), 3, None, {"a": 1}):
        with pytest.raises(CheckpointError, match=r"is not a checkpoint; give a path, the bytes of a file"):
            read_checkpoint(source)  # type: ignore[arg-type]  # on purpose
    closed = io.BytesIO(saved(STATE))
    closed.close()
    with pytest.raises(CheckpointError, match="is closed; open it again"):
        read_checkpoint(closed)


def test_the_sentence_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.pth").write_bytes(b"nothing")
    with (tmp_path / "mine.pth").open("rb") as stream:
        for source in (tmp_path / "mine.pth", stream):
            with pytest.raises(CheckpointError, match=r"^The checkpoint mine\.pth is neither "):
                read_checkpoint(source)


@pytest.mark.parametrize(
    "wrapper", ["state_dict", "model", "model_state_dict", "ema", "model_ema", "state_dict_ema", "net"]
)
def test_wrappers_are_taken_off_and_other_entries_named(wrapper: str) -> None:
    optimizer = {"state": {0: {"exp_avg": torch.zeros(9)}}, "param_groups": [{"lr": 0.1}]}
    found = read_checkpoint(saved({"epoch": 3, "optimizer": optimizer, wrapper: STATE}))
    assert same(found, STATE)
    assert (found.states[0].path, found.ignored) == ((wrapper,), ("epoch", "optimizer"))


def test_parameters_become_plain_tensors() -> None:
    found = read_checkpoint(saved({"w": nn.Parameter(torch.ones(2))}))
    assert (type(found["w"]), found["w"].requires_grad) == (Tensor, False)


@pytest.mark.parametrize("order", [("ema", "model"), ("model", "ema")])
def test_the_model_itself_is_preferred_to_its_average(order: tuple[str, str]) -> None:
    values = {"ema": {"w": torch.zeros(2)}, "model": {"w": torch.ones(2)}}
    found = read_checkpoint(saved({name: values[name] for name in order}))
    assert found["w"].tolist() == [1.0, 1.0]
    assert [state.path for state in found.states] == [("model",), ("ema",)]


def test_a_dictionary_that_holds_itself_ends() -> None:
    stored: dict[str, Any] = {"state_dict": dict(STATE)}
    stored["again"] = stored
    assert same(read_checkpoint(saved(stored)), STATE)
