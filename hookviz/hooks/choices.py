"""Good first choices among the layers of a network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from hookviz.hooks.names import LayerNames
from hookviz.hooks.stages import map_size, without_parts
from hookviz.types import LayerInfo


def first_middle_last(names: Sequence[str]) -> list[str]:
    """The first, the middle and the last of several names, each once."""
    if not names:
        return []
    return list(dict.fromkeys((names[0], names[len(names) // 2], names[-1])))


def first_choice(module: nn.Module, layers: Sequence[LayerInfo]) -> list[str]:
    """The first, a middle and the last convolution that ran; other layers with maps where there are fewer than three.

    ``layers`` is what ``list_layers`` gave for one input.
    """
    convolutions = called(module, layers, nn.modules.conv._ConvNd)
    if len(convolutions) >= 3:
        return first_middle_last(convolutions)
    mapped = [
        info.name
        for info in layers
        if info.name and not info.is_operation and any(len(shape) >= 3 for shape in info.output_shapes)
    ]
    others = [name for name in mapped if name not in convolutions] or [info.name for info in layers if info.calls]
    return list(dict.fromkeys([*convolutions, *first_middle_last(others)]))[:3]


def called(module: nn.Module, layers: Sequence[LayerInfo], kind: type[nn.Module]) -> list[str]:
    """The layers of one kind that ran."""
    names = LayerNames(module)
    return [info.name for info in layers if info.calls and not info.is_operation and isinstance(names[info.name], kind)]


def grad_cam_layer(module: nn.Module, layers: Sequence[LayerInfo]) -> str | None:
    """The layer whose maps Grad-CAM weighs by default; None where the network gives no scores or has no maps.

    It is where the last maps come from: of the layers that ran and have no parts, the last that returns more than one
    position, pooling and dropout aside, and scores per position aside, which are the classifier's; then the outermost
    module around it that returns maps of the same size, for its output is that of its last part. So ``layer4`` of
    ResNets and ``features`` of DenseNet or MobileNet, as in https://arxiv.org/abs/1610.02391, section 3.

    Where these maps are tokens it is the normalisation that feeds the last attention, ``norm1`` of the last block:
    behind that attention only the class token leads to the scores, and the gradient of all others is zero.

    ``layers`` is what ``list_layers`` gave for one input, in which the last layer listed is taken to run last.
    """
    scores = next((info for info in layers if not info.name), None)
    if scores is None or not scores.layouts or scores.layouts[-1] is None or scores.layouts[-1].name != "NC":
        return None
    classes = scores.outputs[-1][0].shape[1]
    names = LayerNames(module)
    mapped = [
        info
        for info in without_parts(layers)
        if map_size(info) and not _passes_on(names[info.name]) and _channels(info) != classes
    ]
    if not mapped:
        return None
    return _before_last_attention(layers, mapped[-1]) or _outermost(layers, mapped[-1])


def _passes_on(layer: nn.Module) -> bool:
    aside = isinstance(layer, (nn.Identity, nn.modules.dropout._DropoutNd))
    return aside or "Pool" in type(layer).__name__  # timm has pooling layers of its own


def _channels(info: LayerInfo) -> int:
    layout, shape = info.layouts[-1], info.outputs[-1][0].shape
    return shape[1] if layout is not None and layout.name.startswith("NC") else shape[-1]


def _outermost(layers: Sequence[LayerInfo], last: LayerInfo) -> str:
    around = (info for info in layers if info.name and f"{last.name}.".startswith(f"{info.name}."))
    return next(info.name for info in around if map_size(info) == map_size(last))


def _before_last_attention(layers: Sequence[LayerInfo], last: LayerInfo) -> str | None:
    """The normalisation in front of the last attention over tokens, if it works at the resolution of the last maps."""
    tokens = [info for info in layers if map_size(info) == map_size(last) and _channels_last(info)]
    attentions = [
        number for number, info in enumerate(tokens) if "Atten" in info.class_name or "Attn" in info.class_name
    ]
    if not attentions:
        return None
    before = [info.name for info in tokens[: attentions[-1]] if "Norm" in info.class_name]
    return before[-1] if before else None


def _channels_last(info: LayerInfo) -> bool:
    layout = info.layouts[-1]
    return layout is not None and layout.name in {"NHWC", "NLC", "LNC"}
