"""Which layer an error came from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from torch import nn

from hookviz.hooks.frames import is_call_of
from hookviz.hooks.names import LayerNames
from hookviz.hooks.recording import FailedLayer
from hookviz.hooks.structure import argument_infos


def has_raised(module: nn.Module) -> bool:
    """Whether a hook of ``module`` is called because the module raised, where torch calls it always."""
    error = sys.exception()
    # An error that is handled further out, or by the network itself, was caught in another place.
    return error is not None and error.__traceback__ is not None and is_call_of(error.__traceback__.tb_frame, module)


def failed_layer(error: BaseException, names: LayerNames) -> FailedLayer | None:
    """Find the innermost layer among the frames an error passed through."""
    layers = {id(module): name for name, module in names.items()}
    calls = [
        frame.f_locals
        for frame in _frames(error.__traceback__)
        if frame.f_code is nn.Module._call_impl.__code__ and id(frame.f_locals.get("self")) in layers
    ]
    if not calls:
        return None
    innermost = calls[-1]
    module = innermost["self"]
    given = argument_infos(innermost["args"], innermost["kwargs"])
    return FailedLayer(layers[id(module)], type(module).__name__, given, f"{type(error).__name__}: {error}")


def _frames(traceback: TracebackType | None) -> Iterator[Any]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
