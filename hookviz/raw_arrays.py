"""A tensor's values as numpy arrays that lose nothing, for files."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hookviz.numeric import dtype_name


def raw_arrays(tensor: Tensor) -> dict[str, npt.NDArray[np.generic]]:
    """A tensor's values in their own dtype, for an NPZ file.

    numpy has no bfloat16, no float8 and no quantized types: of these the file holds the stored bits or integers, and
    ``dtype`` says how to read them.
    """
    plain = tensor.detach().cpu()
    arrays: dict[str, npt.NDArray[np.generic]] = {"dtype": np.array(dtype_name(tensor))}
    if plain.is_quantized:
        return arrays | {"values": plain.int_repr().numpy(), "dequantized": plain.dequantize().numpy()}
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    plain = plain.resolve_conj().resolve_neg()
    if plain.dtype == torch.bfloat16:
        return arrays | {"values": plain.view(torch.uint16).numpy()}
    if plain.dtype.itemsize == 1 and plain.dtype.is_floating_point:
        return arrays | {"values": plain.view(torch.uint8).numpy()}
    return arrays | {"values": plain.numpy()}
