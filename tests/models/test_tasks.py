"""Detection, segmentation, video, optical flow and int8 networks: each fed as it expects, each read rightly."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms.functional import to_tensor

from hookviz.errors import ImageError, ModelError
from hookviz.hooks import attach, list_layers, record
from hookviz.models import ClassMap, Detections, Flow, list_models, list_weights, load_model
from hookviz.models.torchvision_models import architecture

TORCHVISION = torchvision.models.list_models()
TASKS = {
    "classification": [
        *torchvision.models.list_models(module=torchvision.models),
        *torchvision.models.list_models(module=torchvision.models.quantization),
    ],
    "instance segmentation": ["maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2"],
    "keypoints": ["keypointrcnn_resnet50_fpn"],
    "segmentation": torchvision.models.list_models(module=torchvision.models.segmentation),
    "video": torchvision.models.list_models(module=torchvision.models.video),
    "optical flow": torchvision.models.list_models(module=torchvision.models.optical_flow),
}
TASKS["detection"] = [name for name in TORCHVISION if all(name not in names for names in TASKS.values())]
OTHERS = [(name, entry) for name in TORCHVISION for entry in torchvision.models.get_model_weights(name)]


@pytest.fixture
def small() -> Image.Image:
    """Sides that are multiples of 8 from 128 on, so that optical flow takes it as it is."""
    return Image.fromarray(np.random.default_rng(3).integers(0, 256, (136, 160, 3), dtype=np.uint8))


def test_all_121_of_torchvision_are_listed_after_the_bundled_ones() -> None:
    assert list_models()[2:123] == TORCHVISION
    assert len(TORCHVISION) == 121
    assert len(TASKS["detection"]) == 9


@pytest.mark.parametrize("task", TASKS)
def test_each_network_knows_its_task(task: str) -> None:
    assert [name for name in TASKS[task] if architecture(name).task.name != task] == []


def test_default_weights_are_listed_first() -> None:
    assert list_weights("keypointrcnn_resnet50_fpn") == ("COCO_V1", "COCO_LEGACY", "untrained")
    assert list_weights("raft_large")[0] == "C_T_SKHT_V2"
    assert list_weights("quantized_mobilenet_v2") == ("IMAGENET1K_QNNPACK_V1", "untrained")


def expected_input(entry: Any, image: Image.Image, frames: int) -> Tensor:
    """What torchvision's own transforms make of the image, with the axes that networks expect."""
    transform = entry.transforms()
    match type(transform).__name__:
        case "OpticalFlow":
            return torch.cat([one[None] for one in transform(image, image.rotate(180))])
        case "VideoClassification":
            still = torch.from_numpy(np.array(image)).permute(2, 0, 1)
            made: Tensor = transform(torch.stack([still] * frames))[None]
            return made
    alone: Tensor = transform(image)[None]
    return alone


@pytest.mark.parametrize(("name", "entry"), OTHERS, ids=str)
def test_input_of_every_entry_is_what_its_own_transforms_make(name: str, entry: Any, small: Image.Image) -> None:
    """C10, C11: all 150 entries, bit for bit."""
    recipe: Any = architecture(name).find(entry.name).recipe
    flow = type(entry.transforms()).__name__ == "OpticalFlow"
    prepared = recipe.prepare([small, small.rotate(180)] if flow else small)
    assert torch.equal(prepared, expected_input(entry, small, getattr(recipe, "length", 1)))


@pytest.mark.parametrize("name", TASKS["video"])
def test_clips_have_the_length_that_the_weights_were_measured_with(name: str) -> None:
    weights = torchvision.models.get_model_weights(name).DEFAULT
    documented = re.search(r"clip_len=(\d+)", weights.meta["_docs"])
    recipe: Any = architecture(name).default.recipe
    assert documented is not None
    assert recipe.length == int(documented[1])


def seeded(name: str, **options: object) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: nn.Module = torchvision.models.get_model(name, weights=None, **options)
    return module


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ssdlite320_mobilenet_v3_large", {"weights_backbone": None, "num_classes": 91}),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", {"weights_backbone": None, "num_classes": 91}),
        ("lraspp_mobilenet_v3_large", {"weights_backbone": None, "num_classes": 21}),
        ("deeplabv3_mobilenet_v3_large", {"weights_backbone": None, "num_classes": 21, "aux_loss": True}),
        ("r3d_18", {}),
        ("raft_small", {}),
    ],
)
def test_untrained_network_is_the_seeded_one_of_torchvision(name: str, options: dict[str, object]) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    found = load_model(name, None, "cpu").module
    assert torch.equal(torch.get_rng_state(), before)
    expected = seeded(name, **options).state_dict()
    assert list(found.state_dict()) == list(expected)
    assert [key for key, value in found.state_dict().items() if not torch.equal(value, expected[key])] == []
    assert [one for one in found.modules() if one.training] == []


@pytest.mark.parametrize("name", ["ssdlite320_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn"])
def test_a_detector_gets_the_picture_from_0_to_1_and_normalises_it_itself(name: str, photo: Image.Image) -> None:
    """C11: seen where it enters ``model.transform``."""
    model = load_model(name, None, "cpu")
    entered: list[list[Tensor]] = []
    with attach(model.module, {"transform": lambda module, args: entered.append(list(args[0]))}, kind="forward_pre"):
        found = model.predict(photo)
    (images,) = entered
    (image,) = images
    assert torch.equal(image, to_tensor(photo))
    assert image.min().item() >= 0
    assert image.max().item() <= 1
    assert torch.equal(model.inputs(photo)[0][0], to_tensor(photo))
    with torch.no_grad():
        expected: dict[str, Tensor] = model.module([to_tensor(photo)])[0]
    np.testing.assert_array_equal(found.boxes, expected["boxes"].numpy())
    np.testing.assert_array_equal(found.scores, expected["scores"].numpy())
    np.testing.assert_array_equal(found.classes, expected["labels"].numpy())
    names = torchvision.models.get_model_weights(name).DEFAULT.meta["categories"]
    assert found.labels == tuple(names[index] for index in expected["labels"])
    assert model.normalization == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    assert model.crop_box(photo) == (0, 0, 640, 427)


def test_finding_nothing_is_a_result(photo: Image.Image) -> None:
    """C11: an untrained network gives each of 91 classes the same, which is below the threshold."""
    model = load_model("fasterrcnn_mobilenet_v3_large_320_fpn", None, "cpu")
    found: Detections = model.predict(photo)
    assert (len(found), found.boxes.shape, found.labels) == (0, (0, 4), ())


class FixedOutput(nn.Module):
    """Whatever the input, this output; in the place of networks whose values nobody can foresee."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, *_: Any) -> Any:
        return self.output


def answering(name: str, output: Any) -> Any:
    from dataclasses import replace

    return replace(load_model(name, None, "cpu"), module=FixedOutput(output))


def test_masks_and_keypoints_are_read(small: Image.Image) -> None:
    output = {
        "boxes": torch.tensor([[1.0, 2.0, 3.0, 4.0]]),
        "labels": torch.tensor([1]),
        "scores": torch.tensor([0.75]),
        "masks": torch.tensor([[[[0.49, 0.5], [0.0, 1.0]]]]),
        "keypoints": torch.arange(51.0).reshape(1, 17, 3),
    }
    found = answering("ssdlite320_mobilenet_v3_large", [output]).predict(small)
    assert (found.labels, found.scores.tolist()) == (("person",), [0.75])
    np.testing.assert_array_equal(found.masks, [[[False, True], [False, True]]])
    np.testing.assert_array_equal(found.keypoints, np.arange(51.0).reshape(1, 17, 3))
    assert len(found.above(0.76)) == 0
    assert len(found.above(0.75)) == 1
    assert found.above(0.76).masks.shape == (0, 2, 2)


def test_a_segmentation_network_gives_the_most_probable_class_per_pixel(photo: Image.Image) -> None:
    model = load_model("lraspp_mobilenet_v3_large", None, "cpu")
    found: ClassMap = model.predict(photo)
    (batch,) = model.inputs(photo)
    assert batch.shape == (1, 3, 520, 779)  # the shorter side is 520: 640 * 520 / 427 cut to a whole number
    with torch.no_grad():
        expected = model.module(batch)["out"][0].argmax(dim=0)
    np.testing.assert_array_equal(found.classes, expected.numpy())
    assert found.categories[15] == "person"
    assert sum(found.shares.values()) == pytest.approx(1)
    assert model.view(photo).size == (779, 520)


def test_shares_are_counted() -> None:
    found = ClassMap(np.array([[0, 2], [2, 2]]), ("background", "cat", "dog"))
    assert found.shares == {"dog": 0.75, "background": 0.25}


def test_a_video_network_gets_a_still_picture_repeated_and_says_so(small: Image.Image) -> None:
    model = load_model("r3d_18", None, "cpu")
    (clip,) = model.inputs(small)
    assert clip.shape == (1, 3, 16, 112, 112)
    assert all(torch.equal(clip[:, :, frame], clip[:, :, 0]) for frame in range(16))
    assert model.input_note(small) == "This network takes a clip, so the picture stands still for 16 frames."
    predictions = model.predict(small)
    with torch.no_grad():
        expected = model.module(clip).softmax(dim=1)[0].sort(descending=True)
    assert [one.probability for one in predictions] == expected.values[:5].tolist()
    names = torchvision.models.get_model_weights("r3d_18").DEFAULT.meta["categories"]
    assert [one.label for one in predictions] == [names[index] for index in expected.indices[:5]]


def levels(count: int) -> list[Image.Image]:
    """Frames of one gray each: their numbers."""
    return [Image.new("RGB", (171, 128), (number, number, number)) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "numbers", "note"),
    [
        (16, list(range(16)), ""),
        (31, list(range(0, 31, 2)), "Of the 31 frames, 16 are used, evenly from the first to the last."),
        (
            4,
            [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
            "The 4 frames are shown longer, so that they make 16.",
        ),
    ],
)
def test_frames_make_a_clip(count: int, numbers: list[int], note: str) -> None:
    recipe: Any = architecture("r3d_18").default.recipe
    clip = recipe.prepare(levels(count))[0]
    mean, std = (torch.tensor(values).view(3, 1, 1, 1) for values in recipe.normalization)
    shown = ((clip * std + mean) * 255).round()[:, :, 56, 56]
    assert shown.tolist() == [[float(number) for number in numbers]] * 3
    assert recipe.note(levels(count)) == note


@pytest.mark.parametrize("name", ["r3d_18", "s3d", "swin3d_t"])
def test_view_of_a_frame_is_what_is_normalised(name: str, photo: Image.Image) -> None:
    recipe: Any = architecture(name).default.recipe
    seen = np.asarray(recipe.view(photo), dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
    mean, std = (np.asarray(values, dtype=np.float32).reshape(3, 1, 1) for values in recipe.normalization)
    np.testing.assert_array_equal(recipe.prepare(photo)[0, :, 0].numpy(), (seen - mean) / std)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # By hand: 171 x 128 with 112 x 112 kept (29.5 goes to the even 30), then 256 x 256 with 224 x 224 kept.
        ("r3d_18", (30 * 640 / 171, 8 * 427 / 128, 142 * 640 / 171, 120 * 427 / 128)),
        ("s3d", (40.0, 16 * 427 / 256, 600.0, 240 * 427 / 256)),
    ],
)
def test_crop_box_of_a_frame(name: str, expected: tuple[float, ...], photo: Image.Image) -> None:
    assert architecture(name).default.recipe.crop_box(photo) == pytest.approx(expected)


def test_optical_flow_compares_two_frames(small: Image.Image) -> None:
    model = load_model("raft_small", None, "cpu")
    moved = small.rotate(180)
    first, second = model.inputs([small, moved])
    transform = torchvision.models.get_model_weights("raft_small").DEFAULT.transforms()
    assert [torch.equal(a[0], b) for a, b in zip((first, second), transform(small, moved), strict=True)] == [True, True]
    found: Flow = model.predict([small, moved])
    with torch.no_grad():
        expected = model.module(first, second)[-1][0]
    np.testing.assert_array_equal(found.vectors, expected.numpy())
    assert model.input_note([small, moved]) == ""
    assert model.input_note(small) == "This network compares two frames, so the picture is compared with itself."


def test_frames_of_any_size_are_compared_and_the_repeated_edge_is_left_out() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 131, 3), dtype=np.uint8)
    model = load_model("raft_small", None, "cpu")
    first, second = model.inputs(Image.fromarray(noise))
    assert first.shape == (1, 3, 128, 136)
    assert torch.equal(first, second)
    assert torch.equal(first[0, :, :50, :131], to_tensor(Image.fromarray(noise)) * 2 - 1)
    assert torch.equal(first[0, :, 127, 135], first[0, :, 49, 130])
    vectors = torch.arange(2 * 128 * 136.0).reshape(1, 2, 128, 136)
    found = answering("raft_small", [vectors * 0, vectors]).predict(Image.fromarray(noise))
    np.testing.assert_array_equal(found.vectors, vectors[0, :, :50, :131].numpy())


@pytest.mark.parametrize(
    ("name", "frames", "sentence"),
    [
        ("raft_small", [Image.new("RGB", (128, 128)), Image.new("RGB", (128, 136))], "are 128 x 128 and 128 x 136 pix"),
        ("raft_small", [Image.new("RGB", (1025, 1024))], "The frames are 1025 x 1024 pixels, and comparing all"),
        ("r3d_18", [Image.new("RGB", (9, 9)), Image.new("RGB", (9, 8))], "The frames have several sizes"),
        ("r3d_18", [], "There are no frames; pass at least one picture"),
        ("swin3d_t", [Image.new("RGB", (1, 100_000))], "too long and thin"),
        ("fcn_resnet50", [Image.new("RGB", (1, 100_000))], "too long and thin"),
        ("ssd300_vgg16", ["dog.png"], "Expected a PIL image, got str"),
    ],
)
def test_pictures_that_do_not_fit_are_one_sentence(name: str, frames: Any, sentence: str) -> None:
    with pytest.raises(ImageError, match=sentence):
        architecture(name).default.recipe.prepare(frames)


def test_of_several_frames_a_classifier_takes_the_first_and_says_so(small: Image.Image) -> None:
    recipe = architecture("resnet18").default.recipe
    assert torch.equal(recipe.prepare([small, small.rotate(180)]), recipe.prepare(small))
    assert recipe.note([small, small]) == "This network takes one picture, so only the first of 2 frames is used."
    assert recipe.note(small) == ""


@pytest.mark.parametrize(
    ("name", "shape"), [("r3d_18", (1, 3, 112, 112)), ("raft_small", (1, 3, 128, 128)), ("ssd300_vgg16", (3, 9, 9))]
)
def test_a_tensor_that_was_not_prepared_for_the_network_is_one_sentence(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"^A prepared (clip|pair of frames|input) has shape \("):
        architecture(name).default.recipe.check(torch.zeros(shape))


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("lraspp_mobilenet_v3_large", {"out": torch.full((1, 21, 4, 4), torch.nan)}),
        ("raft_small", [torch.full((1, 2, 8, 8), torch.inf)]),
        (
            "ssdlite320_mobilenet_v3_large",
            [{"boxes": torch.full((1, 4), torch.nan), "labels": torch.ones(1).long(), "scores": torch.ones(1)}],
        ),
    ],
)
def test_output_that_is_not_finite_is_one_sentence(name: str, output: Any, small: Image.Image) -> None:
    with pytest.raises(ModelError, match=rf"^The output of {name} is not finite for "):
        answering(name, output).predict(small)


def integers_of(module: nn.Module) -> dict[str, Tensor]:
    """All int8 weights, of convolutions and linear layers."""
    return {
        name: one.weight().int_repr()
        for name, one in module.named_modules()
        if type(one).__module__.startswith("torch.ao.nn") and callable(getattr(one, "weight", None))
    }


@pytest.mark.parametrize("name", ["quantized_shufflenet_v2_x0_5", "quantized_mobilenet_v2"])
def test_an_int8_network_runs_untrained_and_is_the_same_each_time(name: str, small: Image.Image) -> None:
    torch.manual_seed(5)
    before, engine = torch.get_rng_state(), torch.backends.quantized.engine
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, again = (load_model(name, None, "cpu") for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.quantized.engine == engine
    one, other = integers_of(model.module), integers_of(again.module)
    assert len(one) > 40
    assert all(torch.equal(value, other[key]) for key, value in one.items())
    assert min(value.unique().numel() for value in one.values()) > 20
    assert model.predict(small, k=1000) == again.predict(small, k=1000)
    assert model.categories[0] == "tench"


def test_an_int8_network_has_the_layers_of_the_pretrained_one() -> None:
    """torchvision's builder for weights quantizes its MobileNets in another way, to the same layers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = torch.backends.quantized.engine
        expected = torchvision.models.get_model("quantized_mobilenet_v2", weights=None, quantize=True)
        torch.backends.quantized.engine = engine
    found = load_model("quantized_mobilenet_v2", None, "cpu").module
    assert [(name, type(one)) for name, one in found.named_modules()] == [
        (name, type(one)) for name, one in expected.named_modules()
    ]


def test_weights_of_an_int8_network_are_loaded(torch_home: Path, small: Image.Image) -> None:
    entry = torchvision.models.get_model_weights("quantized_shufflenet_v2_x0_5").DEFAULT
    torch_home.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(11)
        engine = torch.backends.quantized.engine
        source = torchvision.models.get_model("quantized_shufflenet_v2_x0_5", weights=None, quantize=True)
        torch.backends.quantized.engine = engine
        torch.save(source.state_dict(), torch_home / Path(entry.url).name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load_model("quantized_shufflenet_v2_x0_5", device="cpu")
    assert (model.weights, torch.backends.quantized.engine) == ("IMAGENET1K_FBGEMM_V1", engine)
    batch = model.prepare(small)
    with torch.no_grad():
        assert torch.equal(model.module(batch), source(batch))


def test_a_checkpoint_that_an_int8_network_cannot_take_is_one_sentence(tmp_path: Path) -> None:
    """Built for a file to fill it, the network still needs defined values to read its scales off."""
    torch.save({"conv1.0.weight": torch.zeros(24, 3, 3, 3)}, tmp_path / "float.pth")
    with pytest.raises(ModelError, match=r"^[^\n]*float\.pth[^\n]*\.$"):
        load_model("quantized_shufflenet_v2_x0_5", tmp_path / "float.pth", "cpu")


def test_an_int8_network_stays_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    notes: list[str] = []
    model = load_model("quantized_shufflenet_v2_x0_5", None, "cuda", on_note=notes.append)
    sentence = "quantized_shufflenet_v2_x0_5 computes with 8-bit integers, which torch does on the CPU only."
    assert (model.device.type, model.note, notes) == ("cpu", sentence, [sentence])
    assert load_model("quantized_shufflenet_v2_x0_5", None, "auto").note == ""


@pytest.mark.parametrize(
    "name", ["ssdlite320_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "quantized_shufflenet_v2_x0_5", "raft_small"]
)
def test_layers_can_be_listed_and_recorded(name: str, small: Image.Image) -> None:
    model = load_model(name, None, "cpu")
    inputs = model.inputs(small)
    infos = list_layers(model.module, *inputs)
    assert [info.name for info in infos] == [layer for layer, _ in model.module.named_modules()]
    convolution = next(info.name for info in infos if "Conv" in info.class_name and info.calls == 1)
    with torch.no_grad(), record(model.module, convolution) as recorded:
        model.module(*inputs)
    assert (
        tuple(recorded[convolution].output.shape)
        == infos[[info.name for info in infos].index(convolution)].output_shapes[0]
    )


@pytest.mark.slow
@pytest.mark.zoo
@pytest.mark.parametrize("name", TORCHVISION)
def test_every_network_of_torchvision_loads_untrained_and_runs(name: str, small: Image.Image) -> None:
    """C63 among them."""
    model = load_model(name, None, "cpu")
    result = model.predict(small)
    kinds: dict[str, type] = {
        "classification": tuple,
        "video": tuple,
        "segmentation": ClassMap,
        "optical flow": Flow,
    }
    assert isinstance(result, kinds.get(model.task, Detections))
