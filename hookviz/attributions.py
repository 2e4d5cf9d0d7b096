"""Attributions by captum (https://captum.ai), an optional extra, on networks that stay as they were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hookviz.errors import GradientError, HookvizError, LayoutError, UnknownLayerError
from hookviz.hooks.as_found import own_arguments
from hookviz.hooks.class_scores import checked_target, class_scores, scores_of_one
from hookviz.hooks.edit import edit
from hookviz.hooks.layers import list_layers
from hookviz.hooks.map_tap import MapTap, has_maps
from hookviz.hooks.names import LayerNames
from hookviz.hooks.private_run import Arguments, as_arguments, private_run
from hookviz.hooks.structure import leaves, map_leaves

LayerMethod: TypeAlias = Literal["GradCAM", "GradientXActivation", "IntegratedGradients", "Conductance"]
InputMethod: TypeAlias = Literal["Saliency", "InputXGradient", "IntegratedGradients"]
Values: TypeAlias = npt.NDArray[np.float32]

_LAYER_CLASSES = {
    "GradCAM": "LayerGradCam",
    "GradientXActivation": "LayerGradientXActivation",
    "IntegratedGradients": "LayerIntegratedGradients",
    "Conductance": "LayerConductance",
}
_STEPPED = {"IntegratedGradients", "Conductance"}
_STEPS_AT_A_TIME = 8
_NO_GRADIENT = ("does not require grad", "appears to not have been used")


class CaptumMissingError(HookvizError):
    """captum is not installed."""


def layer_attribution(  # noqa: PLR0913  # the four that every attribution has, and how to call and read the network
    module: nn.Module,
    args: tuple[Any, ...],
    layer: str,
    target: int | None = None,
    method: LayerMethod = "GradCAM",
    *,
    kwargs: Mapping[str, Any] | None = None,
    call: int | None = None,
) -> Values:
    """How much each position of a layer's maps speaks for a class, (height, width).

    >>> heat = layer_attribution(model, (image,), "layer4", target=457)

    A private copy runs, in eval mode; captum's hooks sit on a layer that is put behind the chosen one in the copy, so
    that operations in place are no obstacle, and tokens are given to it as the maps they are. Grad-CAM is as in
    https://arxiv.org/abs/1610.02391, its ReLU included; of the others the channels are summed, negative values kept.

    Args:
        module: the network, which returns scores of classes, (1, classes).
        args: what it is called with, for one item.
        layer: its name; ``grad_cam_layer`` in ``hookviz.hooks.choices`` says which one is usual.
        target: the class; None for the most probable one.
        method: which of captum's classes: ``LayerGradCam`` and so on.
        kwargs: what it is called with.
        call: which call of the layer, from 0; None for the last.

    Raises:
        CaptumMissingError: captum is not installed.
        UnknownLayerError: no layer has that name, or it does not run.
        LayoutError: the layer returns no maps.
        GradientError: torch has no gradient of the class at the layer.
        HookvizError: no such method, call or class, or the network returns no scores of one item.
    """
    kind = getattr(_captum(), _LAYER_CLASSES[_checked(method, LayerMethod)])
    arguments = as_arguments(args, kwargs)
    name = LayerNames(module).canonical(layer)
    tap = _tap(module, arguments, name, call)
    options = _options(method, arguments) | ({"relu_attributions": True} if method == "GradCAM" else {})
    with _scores(module, arguments, target) as (scores, image, chosen), edit(scores.network, {name: tap}):
        found = kind(scores, tap.maps).attribute(image, target=chosen, **options)
    return _array(found[0].sum(0))


def input_attribution(
    module: nn.Module,
    args: tuple[Any, ...],
    target: int | None = None,
    method: InputMethod = "Saliency",
    *,
    kwargs: Mapping[str, Any] | None = None,
) -> Values:
    """How much each value of a network's input speaks for a class, (channels, height, width).

    The input is the first tensor of the arguments that has height and width. ``Saliency`` is the gradient's magnitude;
    the others have signs. ``IntegratedGradients`` starts from an input of zeros, which after the usual normalisation is
    a grey picture. Arguments and errors are those of :func:`layer_attribution`.
    """
    kind = getattr(_captum(), _checked(method, InputMethod))
    arguments = as_arguments(args, kwargs)
    with _scores(module, arguments, target) as (scores, image, chosen):
        found = kind(scores).attribute(image, target=chosen, **_options(method, arguments))
    return _array(found[0])


def _captum() -> Any:
    try:
        import captum.attr  # an optional extra, and slow to import
    except ImportError as error:
        raise CaptumMissingError('attributions need captum: pip install "hookviz[attributions]".') from error
    return captum.attr


def _checked(method: str, methods: Any) -> str:
    if method not in get_args(methods):
        raise HookvizError(f"no method {method!r}; choose from {', '.join(get_args(methods))}.")
    return method


def _options(method: str, arguments: Arguments) -> dict[str, int]:
    """Steps along the way from nothing to the picture go in small batches, and alone where more than it would grow."""
    alone = len(list(leaves(arguments, Tensor))) > 1
    return {"internal_batch_size": 1 if alone else _STEPS_AT_A_TIME} if method in _STEPPED else {}


def _tap(module: nn.Module, arguments: Arguments, name: str, call: int | None) -> MapTap:
    args, kwargs = arguments
    layouts = next(info.layouts for info in list_layers(module, *args, **kwargs) if info.name == name)
    if not layouts:
        raise UnknownLayerError(f"layer {name!r} did not run; choose one that runs.")
    number = len(layouts) - 1 if call is None else call
    if not 0 <= number < len(layouts):
        raise HookvizError(f"layer {name!r} ran {len(layouts)} times; choose call= from 0 to {len(layouts) - 1}.")
    layout = layouts[number]
    if layout is None or not has_maps(layout):
        raise LayoutError(f"layer {name!r} returns no maps of height and width; choose a convolution or a block.")
    return MapTap(layout, nn.Identity(), call=number)


class _Scores(nn.Module):
    """The network as a function of one tensor among its arguments."""

    def __init__(self, network: nn.Module, arguments: Arguments, path: str) -> None:
        super().__init__()
        self.network = network
        self._arguments = arguments
        self._path = path

    def forward(self, image: Tensor) -> Tensor:
        args, kwargs = map_leaves(self._arguments, Tensor, lambda path, one: image if path == self._path else one)
        output = self.network(*args, **kwargs)
        scores = class_scores(output)
        return scores_of_one(output) if scores is None else scores


@contextmanager
def _scores(module: nn.Module, arguments: Arguments, target: int | None) -> Iterator[tuple[_Scores, Tensor, int]]:
    own: Arguments = own_arguments(arguments)
    with private_run(module) as private:
        args, kwargs = own_arguments(arguments)
        chosen = checked_target(scores_of_one(private(*args, **kwargs)), target)
    path, image = _image(own)
    with private_run(module, gradients=True) as private:
        try:
            yield _Scores(private, own, path), image.detach().requires_grad_(), chosen
        except RuntimeError as error:
            if not any(words in str(error) for words in _NO_GRADIENT):
                raise
            raise GradientError(f"torch has no gradient of class {chosen} to attribute ({error})") from error


def _image(arguments: Arguments) -> tuple[str, Tensor]:
    found = [(path, one) for path, one in leaves(arguments, Tensor) if one.is_floating_point() and one.ndim >= 3]
    if not found:
        raise HookvizError("none of the arguments is a picture, a tensor of floating point with height and width.")
    return found[0]


def _array(values: Tensor) -> Values:
    array: Values = values.detach().to(torch.float32).cpu().numpy()
    return array
