"""Layers' values for an NPZ file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hookviz.cli.output_value import one_call, one_tensor
from hookviz.errors import HookvizError
from hookviz.hooks import Call
from hookviz.raw_arrays import raw_arrays

Arrays = dict[str, npt.NDArray[np.generic]]


def layer_values(name: str, calls: Sequence[Call], number: int | None, path: str | None) -> Arrays:
    """A layer's values by call: ``conv1``, ``conv1.call2`` and so on; the root is ``network``.

    Where numpy lacks the dtype, the array holds the stored bits or integers, ``conv1.dtype`` has torch's name for them,
    and ``conv1.dequantized`` the numbers that quantized ones stand for.

    Args:
        name: the layer's.
        calls: all its calls.
        number: which one, counted from 1; None is all.
        path: which tensor of those returned; None is the first.

    Raises:
        HookvizError: no such call or tensor.
    """
    chosen = calls if number is None else [one_call(calls, number)]
    arrays: Arrays = {}
    for call in chosen:
        key = (name or "network") + (f".call{call.index + 1}" if call.index else "")
        stored = raw_arrays(one_tensor(call, path)[1])
        values, dtype = stored.pop("values"), stored.pop("dtype")
        arrays[key] = values
        if str(dtype) != values.dtype.name:
            arrays[f"{key}.dtype"] = dtype
        arrays |= {f"{key}.{what}": array for what, array in stored.items()}
    return arrays


def joined(layers: Sequence[Arrays]) -> Arrays:
    """The values of several layers together.

    Raises:
        HookvizError: two would have the same name in the file.
    """
    together: Arrays = {}
    for arrays in layers:
        twice = together.keys() & arrays.keys()
        if twice:
            raise HookvizError(f"two layers would be called {min(twice)!r} in the file; write them to two files.")
        together |= arrays
    return together
