"""The decisions about devices, with the accelerators played by stand-ins: nothing here needs one."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.models import load_model
from hookviz.models.device import DeviceWarning, choose_device, copy_on_cpu, is_out_of_memory, place
from hookviz.models.simple_cnn import SimpleCNN

CPU = torch.device("cpu")


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)


@pytest.fixture
def apple(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)


@pytest.fixture
def no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


class FullCard(nn.Module):
    """Two linear layers, of which the second does not fit on the accelerator."""

    def __init__(self) -> None:
        super().__init__()
        self.moves: list[str] = []

    def to(self, *args: object, **kwargs: object) -> FullCard:
        self.moves.append(str(args[0]))
        if str(args[0]) != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self


@pytest.mark.usefixtures("no_accelerator")
def test_auto_is_the_cpu_where_there_is_nothing_else() -> None:
    assert choose_device("auto") == CPU


@pytest.mark.usefixtures("no_accelerator", "apple")
def test_auto_is_mps_before_the_cpu() -> None:
    assert choose_device("auto") == torch.device("mps", 0)
    assert choose_device("mps") == torch.device("mps", 0)


@pytest.mark.usefixtures("two_cards", "apple")
def test_auto_is_the_current_cuda_device_before_all() -> None:
    assert choose_device("auto") == torch.device("cuda", 1)
    assert choose_device("cuda") == torch.device("cuda", 1)
    assert choose_device("cuda:0") == torch.device("cuda", 0)
    assert choose_device(torch.device("cuda", 0)) == torch.device("cuda", 0)
    assert choose_device("cpu") == choose_device("cpu:0") == choose_device(CPU) == CPU


@pytest.mark.usefixtures("no_accelerator")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps", "meta", "gpu", "", torch.device("cuda", 3)])
def test_a_device_that_is_not_there_is_one_sentence(device: str | torch.device) -> None:
    with pytest.raises(ModelError, match=rf"^There is no device '{device}' here; choose one of auto, cpu\.$"):
        load_model("simple_cnn", device=device)


@pytest.mark.usefixtures("two_cards")
def test_the_sentence_names_the_devices_that_are_there() -> None:
    with pytest.raises(
        ModelError, match=r"^There is no device 'cuda:2' here; choose one of auto, cuda:1, cuda:0, cpu\.$"
    ):
        choose_device("cuda:2")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."), True),
        (MemoryError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_failures(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


def test_a_network_that_does_not_fit_goes_back_to_the_cpu() -> None:
    module = FullCard()
    assert place(module, torch.device("cuda", 0)) == CPU
    assert module.moves == ["cuda:0", "cpu"]


@pytest.mark.usefixtures("two_cards")
def test_loading_on_a_full_accelerator_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def to(self: nn.Module, device: torch.device) -> nn.Module:
        if device.type != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return self

    monkeypatch.setattr(SimpleCNN, "to", to)
    notes: list[str] = []
    model = load_model("simple_cnn", device="auto", on_note=notes.append)
    sentence = "simple_cnn does not fit in the memory of cuda:1, so it runs on the CPU, which is slower."
    assert (model.device, model.note, notes) == (CPU, sentence, [sentence])
    with pytest.warns(DeviceWarning, match=f"^{sentence}$"):
        load_model("simple_cnn", device="cuda:1")


@pytest.mark.parametrize("weights", ["default", None])
def test_too_little_memory_to_load_is_one_sentence(weights: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: nn.Module, *_: object) -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    monkeypatch.setattr(SimpleCNN, "__init__", full)
    with pytest.raises(ModelError, match=r"^There is not enough memory to load simple_cnn; choose a smaller model\.$"):
        load_model("simple_cnn", weights)


def test_loading_where_asked_has_no_note() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_model("simple_cnn", device="cpu").note == ""


class FullAtForward(SimpleCNN):
    """Its first forward finds the accelerator's memory full; a copy of it runs on the CPU."""

    fail = True

    def forward(self, images: Tensor) -> Tensor:
        if FullAtForward.fail:
            FullAtForward.fail = False
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().forward(images)


def test_predicting_on_a_full_accelerator_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("simple_cnn", device="cpu")
    full = FullAtForward().eval()
    full.load_state_dict(model.module.state_dict())
    # "meta" stands for the accelerator: prepared inputs are not moved there, everything else is decided as on a card.
    monkeypatch.setattr(Tensor, "to", lambda self, *_: self)
    card = replace(model, module=full, device=torch.device("meta"))
    image = Image.linear_gradient("L").convert("RGB")
    expected = model.predict(image)
    notes: list[str] = []
    assert card.predict(image, on_note=notes.append) == expected
    assert notes == ["simple_cnn does not fit in the memory of meta, so it runs on the CPU, which is slower."]
    FullAtForward.fail = True
    with pytest.warns(DeviceWarning):
        card.predict(image)


def test_other_failures_are_not_hidden() -> None:
    model = load_model("simple_cnn", None, "cpu")
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        model.predict(torch.zeros(1, 3, 64, 64))


def test_the_copy_on_the_cpu_has_values_of_its_own() -> None:
    convolution = nn.Conv2d(3, 4, 3)
    convolution.weight.requires_grad = False
    module = nn.Sequential(convolution, nn.BatchNorm2d(4))
    module.tied = convolution.weight
    copied = copy_on_cpu(module)
    assert [name for name, _ in copied.named_parameters()] == [name for name, _ in module.named_parameters()]
    assert copied.tied is copied.get_submodule("0").weight
    assert [p.requires_grad for p in copied.parameters()] == [p.requires_grad for p in module.parameters()]
    assert all(torch.equal(value, module.state_dict()[name]) for name, value in copied.state_dict().items())
    assert copied.get_submodule("0") is not convolution
