"""The weights that make one channel of a layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.parameter import is_lazy

from hookviz.errors import LayoutError
from hookviz.hooks.names import LayerNames
from hookviz.hooks.private_copy import private_copy
from hookviz.numeric import real, to_float32

RGB = 3


@dataclass(frozen=True, slots=True, eq=False)
class ChannelKernel:
    """The weights that make one output channel, with the input channels they are applied to.

    ``weights`` is (inputs, kH, kW) float32: one row high for sequences, the slices of a volume's kernel from top to
    bottom, and 1×1 for a linear layer. ``inputs`` has the number of each input channel, of which a grouped convolution
    reads some only. ``bias`` is None where there is none. ``is_rgb`` says whether this is a first layer that reads an
    image's red, green and blue. ``note`` is a sentence where the weights are not the stored ones as they are, else
    ``""``.
    """

    weights: npt.NDArray[np.float32]
    inputs: tuple[int, ...]
    channel: int
    bias: float | None
    is_rgb: bool = False
    note: str = ""

    @property
    def strengths(self) -> npt.NDArray[np.float64]:
        """The Euclidean norm of the weights on each input, in the order of ``inputs``."""
        return np.asarray(np.linalg.norm(self.weights.reshape(len(self.inputs), -1).astype(np.float64), axis=1))

    def strongest(self, count: int) -> tuple[int, ...]:
        """Places in ``inputs`` of those with the largest norm, largest first; equal ones in their order."""
        order = np.argsort(-np.nan_to_num(self.strengths, nan=np.inf), kind="stable")
        return tuple(int(place) for place in order[:count])


def channel_kernel(module: nn.Module, layer: str, channel: int) -> ChannelKernel | None:
    """The weights of one output channel of a convolution or a linear layer; None for layers that have none.

    Of pruned and parametrised layers (weight norm, spectral norm) these are the weights as an eval-mode forward uses
    them, of int8 layers the dequantized ones. The network is left as it was.

    Args:
        module: the network.
        layer: a layer's name; a functional operation has no weights of its own.
        channel: which output channel, or which feature of a linear layer.

    Raises:
        LayoutError: there is no such channel.
    """
    names = LayerNames(module)
    if layer not in names:
        return None
    found = names[layer]
    stored = _stored(private_copy(found).eval())
    if stored is None:
        return None
    weight, bias, note = stored
    groups, is_transposed = _grouping(found)
    outputs = weight.shape[1] * groups if is_transposed else weight.shape[0]
    if not 0 <= channel < outputs:
        raise LayoutError(f"There is no channel {channel} of {outputs}: choose from 0 to {outputs - 1}.")
    own, first = _of_channel(weight, channel, groups, is_transposed=is_transposed)
    inputs = tuple(range(first, first + len(own)))
    return ChannelKernel(
        weights=_maps(own),
        inputs=inputs,
        channel=channel,
        bias=None if bias is None else float(bias[channel]),
        is_rgb=own.ndim in {3, 4} and len(inputs) == RGB and groups == 1 and _is_first(names, found),
        note=note,
    )


def _stored(layer: nn.Module) -> tuple[Tensor, Tensor | None, str] | None:
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if callable(weight) and callable(bias):  # how torch's int8 layers have it
        quantized = weight()
        if not isinstance(quantized, Tensor):
            return None
        bias = bias()
        return quantized.dequantize(), None if bias is None else bias.detach(), "dequantized from int8"
    if not isinstance(layer, (_ConvNd, nn.Linear)) or not isinstance(weight, Tensor) or is_lazy(weight):
        return None
    weight, note = _in_use(layer, weight)
    return weight, real(bias.detach()) if isinstance(bias, Tensor) else None, note


def _in_use(layer: nn.Module, weight: Tensor) -> tuple[Tensor, str]:
    """The weight as the next forward will make it: pruning and the older weight norm compute it in a hook."""
    for hook in layer._forward_pre_hooks.values():
        hook(layer, ())
    made = getattr(layer, "weight", weight).detach()
    return real(made), "magnitude of complex weights" if made.is_complex() else ""


def _grouping(layer: nn.Module) -> tuple[int, bool]:
    return int(getattr(layer, "groups", 1)), isinstance(layer, _ConvTransposeNd) or "Transpose" in type(layer).__name__


def _of_channel(weight: Tensor, channel: int, groups: int, *, is_transposed: bool) -> tuple[Tensor, int]:
    """The weights of one output channel, input channels first, and the number of the first of those."""
    if is_transposed:  # (inputs, outputs / groups, ...)
        per_group = weight.shape[1]
        reads = weight.shape[0] // groups
        first = channel // per_group * reads
        return weight[first : first + reads, channel % per_group], first
    reads = weight.shape[1]
    return weight[channel], channel // (weight.shape[0] // groups) * reads


def _maps(own: Tensor) -> npt.NDArray[np.float32]:
    shaped = own.reshape(len(own), -1, own.shape[-1]) if own.ndim > 1 else own.reshape(-1, 1, 1)
    return np.array(to_float32(shaped.detach()), np.float32)


def _is_first(names: LayerNames, layer: nn.Module) -> bool:
    """Whether no other layer with weights is registered before this one."""
    kinds = (_ConvNd, nn.Linear)
    first = next((one for one in names.values() if isinstance(one, kinds) or hasattr(one, "_packed_params")), None)
    return first is layer
