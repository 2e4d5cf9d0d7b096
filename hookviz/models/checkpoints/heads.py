"""The classification head of a network: the layer whose output has one number per class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from torch import nn

from hookviz.errors import ModelError
from hookviz.models.initialization import seeded_initialization

Head: TypeAlias = nn.Linear | nn.Conv2d


def head_names(module: nn.Module) -> tuple[str, ...]:
    """The head's name, and after it those of auxiliary heads; empty where there is none.

    timm's networks declare theirs. Elsewhere it is the last linear layer or 1x1 convolution, and the last one inside
    each branch called ``aux...``.
    """
    declared = _declared(module)
    last = _last_head(module)
    main = declared or ([last] if last is not None else [])
    auxiliary = [
        branch + (f".{inner}" if inner else "")
        for branch in auxiliary_branches(module)
        if (inner := _last_head(module.get_submodule(branch))) is not None
    ]
    return tuple(dict.fromkeys([*main, *auxiliary]))


def auxiliary_branches(module: nn.Module) -> tuple[str, ...]:
    """Branches that only training uses, such as GoogLeNet's ``aux1`` or Inception's ``AuxLogits``."""
    return tuple(name for name, _ in module.named_children() if name.lower().startswith("aux"))


def fit_head(module: nn.Module, num_classes: int) -> nn.Module:
    """The same ``module``, its classification head resized in place to ``num_classes`` seeded random outputs.

    Device, dtype, hooks and ``requires_grad`` of the head stay; random states are not touched.

    Raises:
        ModelError: no head was found, or ``num_classes`` is not positive.
    """
    names = head_names(module)
    if not names or num_classes < 1:
        raise ModelError(
            f"No head with {num_classes} classes can be had here; choose a classifier and 1 class or more."
        )
    for name in names:
        _resize(module.get_submodule(name), num_classes)
    if isinstance(getattr(module, "num_classes", None), int):
        module.num_classes = num_classes  # type: ignore[assignment]  # torch's stubs know tensors and modules only
    return module


def restart(module: nn.Module, name: str) -> None:
    """Give a layer, with all inside it, the seeded random values that its own constructor would draw."""
    with seeded_initialization():
        for layer in module.get_submodule(name).modules():
            if isinstance(layer, nn.Linear | nn.Conv2d):
                _fill(layer, _fresh(layer, _classes(layer)))
            elif callable(reset := getattr(layer, "reset_parameters", None)):
                reset()


def _declared(module: nn.Module) -> list[str]:
    configuration = getattr(module, "pretrained_cfg", None)
    names = configuration.get("classifier") if isinstance(configuration, Mapping) else None
    wanted = [names] if isinstance(names, str) else list(names or ())
    layers = dict(module.named_modules())
    return [name for name in wanted if _is_head(layers.get(name))]


def _last_head(module: nn.Module) -> str | None:
    return next((name for name, layer in reversed(list(module.named_modules())) if _is_head(layer)), None)


def _is_head(layer: nn.Module | None) -> bool:
    return isinstance(layer, nn.Linear) or (isinstance(layer, nn.Conv2d) and layer.kernel_size == (1, 1))


def _resize(head: nn.Module, num_classes: int) -> None:
    assert isinstance(head, nn.Linear | nn.Conv2d)  # noqa: S101  # head_names gives no others
    with seeded_initialization():
        fresh = _fresh(head, num_classes)
    _fill(head, fresh)
    if isinstance(head, nn.Linear):
        head.out_features = num_classes
    else:
        head.out_channels = num_classes


def _fresh(head: Head, num_classes: int) -> Head:
    has_bias = head.bias is not None
    if isinstance(head, nn.Linear):
        return nn.Linear(head.in_features, num_classes, bias=has_bias)
    return nn.Conv2d(head.in_channels, num_classes, head.kernel_size, groups=head.groups, bias=has_bias)  # type: ignore[arg-type]  # kernel_size is a pair in 2-D


def _fill(head: Head, fresh: Head) -> None:
    for name, old in list(head.named_parameters(recurse=False)):
        new = fresh.get_parameter(name).to(old)
        setattr(head, name, nn.Parameter(new, requires_grad=old.requires_grad))


def _classes(head: Head) -> int:
    return head.out_features if isinstance(head, nn.Linear) else head.out_channels
