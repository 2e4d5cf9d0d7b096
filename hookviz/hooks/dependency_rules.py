"""What each of autograd's backward operations says about dependence, whatever the values are.

A mask (1 where something can influence the chosen value, 0 elsewhere) goes through a network's backward pass in place
of the gradient. A gradient vanishes where a ReLU is off, a weight is zero or a maximum lies elsewhere; a mask does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

aten = torch.ops.aten


class Operation(NamedTuple):
    """One call of an operation of which at least one argument is a mask."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_mask: Callable[[Tensor], bool]

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor among the arguments."""
        return [one for one in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(one, Tensor)]

    @property
    def masks(self) -> list[Tensor]:
        """The arguments that are masks."""
        return [one for one in self.tensors if self.is_mask(one)]


Rule: TypeAlias = Callable[[Operation], Any]


def rule_of(function: Any) -> Rule | None:
    """How a mask passes an operation, which neither is a view nor writes in place; None where that is not known."""
    name = function.overloadpacket.__name__.removesuffix("_").removeprefix("_")
    if name in _RULES:
        return _RULES[name]
    if name in _ELEMENT_BY_ELEMENT or torch.Tag.pointwise in function.tags:
        return union
    return moved if name in _MOVING or name.startswith("upsample_") else None


def binary(values: Tensor, above: float = 0.0) -> Tensor:
    """1 where a value is larger, in either direction, else 0."""
    return values.abs().gt(above).to(values.dtype)


def union(operation: Operation) -> Tensor:
    """Element by element: 1 where any mask is."""
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in operation.tensors))
    masks = operation.masks
    joined = masks[0] != 0
    for mask in masks[1:]:
        joined = joined | (mask != 0)
    return joined.to(masks[0].dtype).expand(shape).contiguous()


def moved(operation: Operation) -> Any:
    """What only moves and adds values, never with a negative factor, can be given the mask itself."""
    output = operation.function(*operation.args, **operation.kwargs)
    return pytree.tree_map_only(Tensor, binary, output)


def everything(operation: Operation) -> Any:
    """For operations that nothing is known of: all may depend on all."""
    output = operation.function(*operation.args, **operation.kwargs)
    reached = _any(operation.masks)
    return pytree.tree_map_only(Tensor, lambda one: torch.ones_like(one) * reached.to(one.dtype), output)


def _any(masks: Sequence[Tensor]) -> Tensor:
    return torch.stack([mask.ne(0).any() for mask in masks]).any()


def _convolution(operation: Operation) -> tuple[Tensor | None, ...]:
    grad, inputs, weight, bias_sizes, *geometry, wanted = operation.args
    found = operation.function(binary(grad), inputs, torch.ones_like(weight), bias_sizes, *geometry, [wanted[0], 0, 0])
    reached = _any([grad])
    return (
        # The counts are whole numbers but for the rounding of transformed convolutions.
        binary(found[0], 0.5) if wanted[0] else None,
        torch.ones_like(weight) * reached if wanted[1] else None,
        grad.new_ones(bias_sizes) * reached if wanted[2] else None,
    )


def _product(operation: Operation) -> Tensor:
    """A matrix product, in which whatever is no mask could have any values."""
    factors = [binary(one) if operation.is_mask(one) else torch.ones_like(one) for one in operation.args]
    return binary(operation.function(*factors), 0.5)


def _batch_norm(operation: Operation) -> tuple[Tensor | None, ...]:
    grad, _, weight, *_, uses_batch, _, wanted = operation.args
    others = [axis for axis in range(grad.ndim) if axis != 1]
    spread = _spread(grad, others) if uses_batch else binary(grad)
    return (spread, *_of_parameters(grad, (weight, weight), wanted))


def _layer_norm(operation: Operation) -> tuple[Tensor | None, ...]:
    grad, _, normalized, *rest, wanted = operation.args
    return (_spread(grad, range(-len(normalized), 0)), *_of_parameters(grad, rest[2:], wanted))


def _rms_norm(operation: Operation) -> tuple[Tensor | None, ...]:
    grad, _, normalized, _, weight, wanted = operation.args
    return (_spread(grad, range(-len(normalized), 0)), *_of_parameters(grad, [weight], wanted))


def _group_norm(operation: Operation) -> tuple[Tensor | None, ...]:
    grad, _, _, _, weight, items, _, _, groups, wanted = operation.args
    spread = _spread(grad.reshape(items, groups, -1), [-1]).reshape(grad.shape)
    return (spread, *_of_parameters(grad, (weight, weight), wanted))


def _of_parameters(grad: Tensor, parameters: Sequence[Tensor | None], wanted: Sequence[bool]) -> list[Tensor | None]:
    """The masks of weight and bias, of which only networks that compute them from the image have any use."""
    pairs = zip(parameters, wanted[1:], strict=False)
    return [torch.ones_like(one) * _any([grad]) if one is not None and on else None for one, on in pairs]


def _spread(mask: Tensor, axes: Sequence[int]) -> Tensor:
    return mask.ne(0).any(dim=tuple(axes), keepdim=True).to(mask.dtype).expand(mask.shape).contiguous()


def _softmax(operation: Operation) -> Tensor:
    return _spread(operation.args[0], [operation.args[2]])


def _attention(operation: Operation) -> tuple[Tensor | None, ...]:
    """A query depends on its own output alone, keys and values on every output of their head; biases on all."""
    grad, query, key, value = operation.args[:4]
    output = operation.function(*operation.args, **operation.kwargs)
    rows = grad.ne(0).any(dim=-1, keepdim=True)
    shared = rows.any(dim=2, keepdim=True)
    shared = shared if key.shape[1] == query.shape[1] else shared.any(dim=1, keepdim=True)
    own = [(rows * torch.ones_like(query)), (shared * torch.ones_like(key)), (shared * torch.ones_like(value))]
    return (*own, *(None if one is None else torch.ones_like(one) for one in output[3:]))


def _max_pool(operation: Operation) -> Tensor:
    """Each output depends on its whole window, not on the largest value alone."""
    grad, inputs, *sizes = operation.args
    axes = 3 if "3d" in operation.function.overloadpacket.__name__ else 2
    kernel, stride, padding, dilation = (_each(size, axes) for size in sizes[:4])
    stride = stride or kernel
    outputs, extents = grad.shape[-axes:], inputs.shape[-axes:]
    spans = [
        max(before + extent, (count - 1) * step + (width - 1) * apart + 1)
        for before, extent, count, step, width, apart in zip(
            padding, extents, outputs, stride, kernel, dilation, strict=True
        )
    ]
    canvas = grad.new_zeros((*grad.shape[:-axes], *spans))
    for offset in itertools.product(*map(range, kernel)):
        starts = [place * apart for place, apart in zip(offset, dilation, strict=True)]
        window = [
            slice(start, start + (count - 1) * step + 1, step)
            for start, count, step in zip(starts, outputs, stride, strict=True)
        ]
        canvas[(..., *window)] += grad
    inside = [slice(before, before + extent) for before, extent in zip(padding, extents, strict=True)]
    return binary(canvas[(..., *inside)]).contiguous()


def _each(size: Sequence[int], axes: int) -> list[int]:
    return list(size) * axes if len(size) == 1 else list(size)


def _adaptive_max_pool(operation: Operation) -> Tensor:
    """Its windows are those of the average."""
    grad, inputs, _ = operation.args
    average = aten._adaptive_avg_pool3d_backward if inputs.ndim == 5 else aten._adaptive_avg_pool2d_backward
    found: Tensor = average(binary(grad), inputs)
    return binary(found)


def _scattered(operation: Operation) -> Tensor:
    """Which element a value came from is a matter of values, as the largest of a row is."""
    output = operation.function(*operation.args, **operation.kwargs)
    return _spread(output, [operation.args[1]]) if output.ndim else binary(output)


def _gated(operation: Operation) -> Tensor:
    grad, inputs, axis = operation.args
    return torch.cat([binary(grad)] * 2, axis).expand(inputs.shape)


def _parametric_relu(operation: Operation) -> tuple[Tensor, Tensor]:
    grad, _, weight = operation.args
    return binary(grad), torch.ones_like(weight) * _any([grad])


_RULES: dict[str, Rule] = {
    "convolution_backward": _convolution,
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), _product),
    "native_batch_norm_backward": _batch_norm,
    "native_layer_norm_backward": _layer_norm,
    "fused_rms_norm_backward": _rms_norm,
    "native_group_norm_backward": _group_norm,
    **dict.fromkeys(("softmax_backward_data", "log_softmax_backward_data"), _softmax),
    **dict.fromkeys(
        (
            "scaled_dot_product_flash_attention_for_cpu_backward",
            "scaled_dot_product_flash_attention_backward",
            "scaled_dot_product_efficient_attention_backward",
            "scaled_dot_product_cudnn_attention_backward",
        ),
        _attention,
    ),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"), _max_pool),
    **dict.fromkeys(("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward"), _adaptive_max_pool),
    "scatter": _scattered,
    "glu_backward": _gated,
    "prelu_kernel_backward": _parametric_relu,
}

_ELEMENT_BY_ELEMENT = frozenset(
    {
        *("hardswish_backward", "hardsigmoid_backward", "hardtanh_backward", "elu_backward", "leaky_relu_backward"),
        *("softplus_backward", "mish_backward", "log_sigmoid_backward", "hardshrink_backward", "softshrink_backward"),
        *("rrelu_with_noise_backward", "rsub"),
        *(f"fake_quantize_per_{what}_affine_cachemask_backward" for what in ("tensor", "channel")),
    }
)

_MOVING = frozenset(
    {
        *("sum", "cat", "stack", "clone", "to_copy", "unsafe_view", "reshape_copy", "constant_pad_nd"),
        *("slice_backward", "select_backward", "diagonal_backward", "unfold_backward", "index", "unsafe_index"),
        *("index_select", "gather", "scatter_add", "index_put", "index_put_impl", "unsafe_index_put", "index_add"),
        *("flip", "roll", "repeat", "cumsum", "tril", "triu", "im2col", "col2im", "pixel_shuffle", "pixel_unshuffle"),
        *("channel_shuffle", "native_channel_shuffle", "avg_pool2d_backward", "avg_pool3d_backward", "copy"),
        *("adaptive_avg_pool2d_backward", "adaptive_avg_pool3d_backward"),
        *(f"{kind}_pad{axes}d_backward" for kind in ("reflection", "replication") for axes in (1, 2, 3)),
    }
)
