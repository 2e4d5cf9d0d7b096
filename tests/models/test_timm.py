"""timm's architectures: each with its own preprocessing, names and weights, exactly as timm has them."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file
from timm.data import ImageNetInfo, create_transform, resolve_data_config
from timm.models import get_arch_pretrained_cfgs, get_pretrained_cfg
from torch import nn

from hookviz.errors import ImageError, ModelError, WeightsUnavailableError
from hookviz.models import list_models, list_weights, load_model
from hookviz.models.timm_recipe import TimmRecipe

# The smallest network of each of sixty of timm's modules.
FAMILIES = [
    "test_convnext",
    "test_efficientnet",
    "test_vit",
    "test_nfnet",
    "test_mambaout",
    "test_byobnet",
    "test_resnet",
    "starnet_s050",
    "test_coatnet",
    "test_vit_relpos",
    "dla46x_c",
    "mobilevit_xxs",
    "edgenext_xx_small",
    "mobilenetv3_small_050",
    "ese_vovnet19b_slim_dw",
    "repghostnet_050",
    "efficientvit_m0",
    "ghostnet_050",
    "regnetx_002",
    "cspnext_tiny",
    "iformer_t",
    "xcit_nano_12_p8_224",
    "cs3darknet_focus_s",
    "efficientvit_b0",
    "swiftformer_xs",
    "efficientformerv2_s0",
    "pvt_v2_b0",
    "fasternet_t0",
    "fastvit_t8",
    "lcnetv2_small",
    "inception_next_atto",
    "rexnet_100",
    "pit_ti_224",
    "hardcorenas_b",
    "repvit_m1",
    "vit_tiny_patch16_dinov3_qkvb",
    "coat_tiny",
    "convit_tiny",
    "deit_tiny_patch16_224",
    "gmlp_ti16_224",
    "hgnetv2_b0",
    "shvit_s1",
    "vit_tiny_r_s16_p8_224",
    "cpubone_nano",
    "efficientvim_m1",
    "crossvit_tiny_240",
    "levit_128s",
    "densenet121",
    "halonet_h1",
    "dpn48b",
    "visformer_tiny",
    "resnest14d",
    "csatv2",
    "resnetv2_18",
    "legacy_seresnet18",
    "poolformerv2_s12",
    "cait_xxs24_224",
    "skresnet18",
    "gcvit_xxtiny",
    "tiny_vit_5m_224",
]
SMALL = ["mobilenetv3_small_050", "vit_tiny_patch16_224", "convnext_atto", "test_resnet"]


def seeded(name: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: nn.Module = timm.create_model(name, pretrained=False)
    return module


def recipe_settings(config: dict[str, Any]) -> tuple[object, ...]:
    data = resolve_data_config(pretrained_cfg=config)
    return tuple(str(data[key]) for key in ("input_size", "interpolation", "crop_pct", "crop_mode", "mean", "std"))


CONFIGS = [
    config.to_dict()
    for name in timm.list_models()
    for config in get_arch_pretrained_cfgs(name).values()
    if config.hf_hub_id or config.url
]
ONE_OF_EACH = {settings: config for config in CONFIGS if (settings := recipe_settings(config))}


def test_every_registered_architecture_is_listed_without_being_imported() -> None:
    listed = [name for name in list_models() if name.startswith("timm/")]
    assert listed == sorted(f"timm/{name}" for name in timm.list_models())
    assert list_models()[-len(listed) :] == listed


@pytest.mark.parametrize(
    ("name", "first", "count"),
    [
        ("timm/resnet50", ("a1_in1k", "a1h_in1k"), 20),
        ("timm/vit_base_patch16_224", ("augreg2_in21k_ft_in1k", "augreg_in21k_ft_in1k"), 11),
        ("timm/darknet17", ("untrained",), 1),
    ],
)
def test_lists_the_pretrained_tags_the_default_first(name: str, first: tuple[str, ...], count: int) -> None:
    names = list_weights(name)
    assert names[: len(first)] == first
    assert (len(names), names[-1]) == (count, "untrained")


@pytest.mark.parametrize("name", SMALL)
def test_untrained_network_is_the_seeded_one_of_timm(name: str) -> None:
    """C84: with the caller's random state where it was."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    model = load_model(f"timm/{name}", None, "cpu")
    assert torch.equal(torch.get_rng_state(), before)
    expected = seeded(name).state_dict()
    found = model.module.state_dict()
    assert list(found) == list(expected)
    assert [key for key in expected if not torch.equal(found[key], expected[key])] == []
    assert (model.task, model.weights, model.trained) == ("classification", "untrained", False)
    assert model.source == f"timm {timm.__version__} {name}, Apache-2.0, untrained"


def test_predicting_gives_five_named_classes_and_reads_the_softmax(photo: Image.Image) -> None:
    model = load_model("timm/mobilenetv3_small_050", None, "cpu")
    (batch,) = model.inputs(photo)
    with torch.no_grad():
        expected = torch.softmax(model.module(batch), dim=1)[0]
    found: Any = model.predict(photo)
    names = torchvision.models.ResNet18_Weights.DEFAULT.meta["categories"]
    assert [(one.label, one.probability) for one in found] == [
        (names[index], expected[index].item()) for index in expected.argsort(descending=True)[:5].tolist()
    ]


@pytest.mark.parametrize("config", ONE_OF_EACH.values(), ids=lambda config: f"{config['architecture']}.{config['tag']}")
def test_each_recipe_of_timm_is_exact(config: dict[str, Any], photo: Image.Image) -> None:
    """C10: one entry of each of timm's different ways to resize, crop and normalise."""
    data = resolve_data_config(pretrained_cfg=config)
    expected = create_transform(**data, is_training=False)(photo)
    recipe = TimmRecipe.of(config)
    assert torch.equal(recipe.prepare(photo), expected.unsqueeze(0))
    assert recipe.normalization == (tuple(data["mean"]), tuple(data["std"]))


def one_with(**wanted: object) -> TimmRecipe:
    found = next(c for c in ONE_OF_EACH.values() if all(resolved(c)[key] == value for key, value in wanted.items()))
    return TimmRecipe.of(found)


def resolved(config: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = resolve_data_config(pretrained_cfg=config)
    return data


RECIPES = {
    "center": one_with(crop_mode="center", crop_pct=0.875),
    "squash": one_with(crop_mode="squash", crop_pct=0.9),
    "border": one_with(crop_mode="border"),
    "not square": one_with(input_size=(3, 1024, 768)),
    "smaller than the crop": one_with(crop_pct=1.15),
}
SIZES = [(640, 427), (427, 640), (300, 301), (224, 224), (31, 900), (900, 31), (1, 1)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_view_is_what_is_normalised(recipe: TimmRecipe, size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    levels = np.asarray(recipe.view(image), dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
    mean, std = (np.asarray(values, dtype=np.float32).reshape(3, 1, 1) for values in recipe.normalization)
    np.testing.assert_array_equal(recipe.prepare(image)[0].numpy(), (levels - mean) / std)


@pytest.mark.parametrize("size", [(640, 427), (427, 640), (300, 301), (1200, 500)], ids=str)
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_crop_box_covers_the_view(recipe: TimmRecipe, size: tuple[int, int]) -> None:
    """A picture whose pixels say where they lie; a place outside it has the border's colour."""
    columns, rows = np.meshgrid(np.linspace(100, 255, size[0]), np.linspace(100, 255, size[1]))
    image = Image.fromarray(np.stack([columns, rows, rows], axis=2).astype(np.uint8))
    left, upper, right, lower = recipe.crop_box(image)
    view = np.asarray(recipe.view(image), dtype=np.float64)
    height, width = view.shape[:2]
    for x, y in ((3, 3), (width - 4, 3), (3, height - 4), (width // 2, height // 2)):
        at = left + (x + 0.5) * (right - left) / width, upper + (y + 0.5) * (lower - upper) / height
        outside = not (0 < at[0] < size[0] and 0 < at[1] < size[1])
        colour = [round(255 * value) for value in recipe.normalization[0]]
        border = colour[:2] if recipe.config["crop_mode"] == "border" else [0, 0]
        expected = border if outside else [100 + at[axis] * 155 / size[axis] for axis in (0, 1)]
        np.testing.assert_allclose(view[y, x, :2], expected, atol=2)


@pytest.mark.parametrize(
    ("crop_mode", "size", "expected"),
    [
        # By hand, all for crops of 100 %: the middle square; everything; a square around everything.
        ("center", (400, 200), (100.0, 0.0, 300.0, 200.0)),
        ("squash", (400, 200), (0.0, 0.0, 400.0, 200.0)),
        ("border", (400, 200), (0.0, -100.0, 400.0, 300.0)),
    ],
)
def test_crop_box_by_hand(crop_mode: str, size: tuple[int, int], expected: tuple[float, ...]) -> None:
    recipe = TimmRecipe.of({"input_size": (3, 200, 200), "crop_pct": 1.0, "crop_mode": crop_mode})
    assert recipe.crop_box(Image.new("RGB", size)) == expected
    assert recipe.input_size == (200, 200)


def test_an_endless_strip_is_refused_where_it_would_not_fit() -> None:
    strip = Image.new("RGB", (1, 100_000))
    with pytest.raises(ImageError, match=r"^The image is 1 x 100000 pixels, too long and thin"):
        RECIPES["center"].prepare(strip)
    assert RECIPES["squash"].prepare(strip).shape[0] == 1


def categories(name: str, tag: str) -> tuple[str, ...]:
    from hookviz.models.timm_models import architecture

    return architecture(f"timm/{name}").find(tag).categories


def test_imagenet_classes_have_the_names_that_torchvision_gives_them() -> None:
    expected = tuple(torchvision.models.ResNet18_Weights.DEFAULT.meta["categories"])
    assert categories("resnet50", "a1_in1k") == expected


@pytest.mark.parametrize(
    ("name", "tag", "subset", "count"),
    [
        ("convnext_nano", "in12k", "imagenet-12k", 11821),
        ("convnext_tiny", "fb_in22k", "imagenet-22k", 21841),
        ("vit_base_patch16_224", "augreg_in21k", "imagenet-21k-goog", 21843),
        ("mobilenetv3_large_100", "miil_in21k", "imagenet-21k-miil", 11221),
    ],
)
def test_larger_imagenets_have_the_names_that_timm_gives_them(name: str, tag: str, subset: str, count: int) -> None:
    found = categories(name, tag)
    information = ImageNetInfo(subset)
    assert len(found) == count
    assert [found[index] for index in (0, 17, count - 1)] == [
        information.index_to_description(index) for index in (0, 17, count - 1)
    ]


def test_classes_that_nobody_named_are_numbered() -> None:
    """1,000 classes that are not ImageNet's must not be called by its names."""
    assert categories("resmlp_12_224", "fb_dino") == tuple(f"class {index}" for index in range(1000))
    assert categories("vit_base_patch16_224", "bamboo")[115_216] == "class 115216"


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("vit_small_patch14_dinov2", "lvd142m"),
        ("convnext_base", "clip_laion2b"),
        ("vit_pe_core_tiny_patch16_384", "fb"),
    ],
)
def test_networks_without_a_classifier_have_no_classes(name: str, tag: str) -> None:
    """An embedding of 640 numbers that is compared with a text's is no 640 classes."""
    assert categories(name, tag) == ()


def test_features_alone_predict_nothing(photo: Image.Image) -> None:
    model = load_model("timm/test_vit4", None, "cpu")
    assert len(model.categories) == 1000
    embedding = load_model("timm/vit_pe_core_tiny_patch16_384", None, "cpu")
    with pytest.raises(ModelError, match=r"^The weights untrained of timm/vit_pe_core_tiny_patch16_384 have no class"):
        embedding.predict(photo)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hugging Face hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    return tmp_path / "hub-cache"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that were asked for, all in vain."""
    asked: list[str] = []

    def fail(host: str, *_: object, **__: object) -> None:
        asked.append(host)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    return asked


@pytest.mark.usefixtures("torch_home", "hub_cache")
def test_without_a_network_the_untrained_network_is_offered_after_one_attempt(no_network: list[str]) -> None:
    with pytest.raises(WeightsUnavailableError) as caught:
        load_model("timm/test_resnet")
    assert str(caught.value) == (
        "The weights r160_in1k of timm/test_resnet: timm--test_resnet.r160_in1k--model.safetensors "
        "could not be downloaded: huggingface.co could not be reached; "
        "load_model('timm/test_resnet', weights=None) gives the same network untrained."
    )
    assert no_network == ["huggingface.co"]


@pytest.mark.usefixtures("torch_home", "hub_cache")
def test_the_hub_is_not_asked_where_its_own_variable_forbids(
    no_network: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsUnavailableError, match="is not in the cache, and HF_HUB_OFFLINE forbids to download it"):
        load_model("timm/test_resnet")
    assert no_network == []


def test_a_network_nobody_trained_says_so() -> None:
    with pytest.raises(
        WeightsUnavailableError,
        match=r"^There are no trained weights of timm/darknet17; load_model\('timm/darknet17', weights=None\) gives it",
    ):
        load_model("timm/darknet17")


def random_state(name: str, seed: int = 7) -> dict[str, torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return dict(timm.create_model(name, pretrained=False).state_dict())


def put_in_hub_cache(cache: Path, repository: str, state: dict[str, torch.Tensor]) -> Path:
    """As huggingface_hub lays it out: a folder per repository, a snapshot per commit, and what ``main`` is."""
    folder = cache / ("models--" + repository.replace("/", "--"))
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc123")
    path = folder / "snapshots" / "abc123" / "model.safetensors"
    path.parent.mkdir(parents=True)
    save_file(state, path)
    return path


@pytest.mark.parametrize("weights", ["default", "r160_in1k", "test_vit.r160_in1k"])
def test_weights_in_the_hub_cache_are_loaded_from_there(weights: str, hub_cache: Path, no_network: list[str]) -> None:
    state = random_state("test_vit")
    put_in_hub_cache(hub_cache, "timm/test_vit.r160_in1k", state)
    model = load_model("timm/test_vit", weights, "cpu")
    assert all(torch.equal(value, state[key]) for key, value in model.module.state_dict().items())
    assert (model.weights, model.trained) == ("r160_in1k", True)
    assert model.source == f"timm {timm.__version__} test_vit.r160_in1k, apache-2.0"
    assert no_network == []


def test_weights_in_torch_s_cache_are_loaded_from_there(
    torch_home: Path, hub_cache: Path, no_network: list[str]
) -> None:
    torch_home.mkdir(parents=True)
    state = random_state("test_vit")
    save_file(state, torch_home / "timm--test_vit.r160_in1k--model.safetensors")
    loaded = load_model("timm/test_vit", device="cpu").module.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in loaded.items())
    assert no_network == []


def test_a_vision_transformer_in_a_foreign_format_on_github_is_taken_from_the_hub(
    hub_cache: Path, no_network: list[str]
) -> None:
    """timm marks these as ``custom_load``, which is for the .npz of their address, not for the hub's file."""
    config = get_pretrained_cfg("vit_tiny_patch16_224.augreg_in21k_ft_in1k")
    assert config.custom_load
    state = random_state("vit_tiny_patch16_224")
    put_in_hub_cache(hub_cache, "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k", state)
    loaded = load_model("timm/vit_tiny_patch16_224", device="cpu").module.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in loaded.items())
    assert no_network == []


def test_a_damaged_file_is_one_sentence(hub_cache: Path) -> None:
    path = put_in_hub_cache(hub_cache, "timm/test_vit.r160_in1k", random_state("test_vit"))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(
        WeightsUnavailableError, match=rf"^The weights file {re.escape(str(path))} is damaged; delete it"
    ):
        load_model("timm/test_vit")


def test_a_checkpoint_fills_a_network_of_timm(tmp_path: Path) -> None:
    state = random_state("test_resnet")
    torch.save(state, tmp_path / "own.pth")
    model = load_model("timm/test_resnet", tmp_path / "own.pth", "cpu")
    assert all(torch.equal(value, state[key]) for key, value in model.module.state_dict().items())


def test_an_unknown_name_has_the_nearest_as_a_hint() -> None:
    with pytest.raises(KeyError, match=r"There is no model 'timm/resnett50'; did you mean 'timm/resnet50'"):
        load_model("timm/resnett50")


def test_unknown_weights_are_one_sentence_with_the_tags() -> None:
    with pytest.raises(
        ModelError, match=r"^timm/test_vit has no weights 'a9_in1k'; choose one of r160_in1k, untrained\.$"
    ):
        load_model("timm/test_vit", "a9_in1k")


@pytest.mark.slow
@pytest.mark.zoo
@pytest.mark.parametrize("name", FAMILIES)
def test_networks_of_sixty_families_are_the_seeded_ones_and_run(name: str, photo: Image.Image) -> None:
    model = load_model(f"timm/{name}", None, "cpu")
    expected = seeded(name).state_dict()
    assert [key for key, value in model.module.state_dict().items() if not torch.equal(value, expected[key])] == []
    with torch.no_grad():
        output = model.module(*model.inputs(photo))
    assert output.isfinite().all()
    assert len(model.categories) in {0, output.shape[1]}
