"""What real numbers a tensor shows: magnitudes of complex ones, dequantized and dense values of the others."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from hookviz.errors import HookvizError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

CHUNK = 2**22
"""Elements converted to float64 at a time, so that 100 million of them do not need 800 MB at once."""

SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def dtype_name(tensor: torch.Tensor) -> str:
    """The dtype as torch names it without the prefix, such as ``"bfloat16"``."""
    return str(tensor.dtype).removeprefix("torch.")


def shows(tensor: torch.Tensor) -> str:
    """What the real numbers are of: ``"value"``, ``"magnitude"`` or ``"dequantized value"``."""
    if tensor.is_quantized:
        return "dequantized value"
    return "magnitude" if tensor.is_complex() else "value"


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape, where there is one number for each axis.

    Raises:
        HookvizError: for a nested tensor, whose items differ in size.
    """
    if tensor.is_nested:
        raise HookvizError("This nested tensor's items differ in size: pick one of them with tensor.unbind()[index].")
    return tuple(tensor.shape)


def density_note(tensor: torch.Tensor) -> str:
    """How many elements a sparse tensor stores, for the reader; ``""`` for any other."""
    if tensor.layout not in SPARSE:
        return ""
    stored = tensor.detach().coalesce().values() if tensor.layout == torch.sparse_coo else tensor.detach().values()
    share = f" ({stored.numel() / tensor.numel():.1%})" if tensor.numel() else ""
    return f"sparse: {stored.numel()} of {tensor.numel()} elements stored{share}, the others are zero"


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """A plain, strided, dequantized tensor outside any graph; it shares memory where nothing had to be computed.

    Raises:
        HookvizError: for what is no tensor, and for tensors that hold no numbers (meta, fake, packed bits).
    """
    check_tensor(tensor)
    with _sentence_for(tensor), torch.no_grad():
        plain = tensor.detach()
        if type(plain) is not torch.Tensor and not plain.is_nested:
            plain = plain.as_subclass(torch.Tensor)
        if plain.is_quantized:
            return plain.dequantize()
        return plain if plain.layout in (torch.strided, torch.jagged) else plain.to_dense()


def real(plain: torch.Tensor) -> torch.Tensor:
    """The magnitude of a complex tensor, in float64; any other tensor as it is."""
    with torch.no_grad():
        return plain.to(torch.complex128).abs() if plain.is_complex() else plain


def float64_chunks(tensor: torch.Tensor) -> Iterator[npt.NDArray[np.float64]]:
    """All numbers of a tensor as 1-D float64 arrays of at most ``CHUNK`` elements, in no particular order.

    Integers beyond 2**53 come as the nearest float64.

    Raises:
        HookvizError: as :func:`dense`.
    """
    whole = dense(tensor)
    with _sentence_for(tensor):
        for plain in whole.unbind() if whole.is_nested else (whole,):
            for part in _parts(plain):
                yield to_float64(part).reshape(-1)


def to_float64(plain: torch.Tensor) -> npt.NDArray[np.float64]:
    """The real numbers of a dense tensor, in its own shape."""
    return _array(plain, torch.float64)


def to_float32(plain: torch.Tensor) -> npt.NDArray[np.float32]:
    """The same in float32, which loses digits of float64 and of large integers; it may share memory."""
    return _array(plain, torch.float32)


def check_tensor(tensor: object) -> None:
    """Raise :class:`HookvizError` unless this is a tensor that holds numbers."""
    if not isinstance(tensor, torch.Tensor):
        raise HookvizError(f"Expected a torch.Tensor, got {type(tensor).__name__}: pick one tensor out of the output.")
    if tensor.is_meta:
        raise HookvizError("This tensor is on the meta device and holds no numbers: run the model on a real device.")
    if is_lazy(tensor):
        raise HookvizError("This parameter of a lazy module has no values yet: run the module once.")


def _array(plain: torch.Tensor, dtype: torch.dtype) -> npt.NDArray[Any]:
    with _sentence_for(plain), torch.no_grad():
        host = real(plain.cpu()).resolve_neg()
        if host.dtype == torch.float32 and dtype == torch.float64:
            # Converting in torch wakes its threads, and their busy waiting slows down what numpy does next.
            return host.numpy().astype(np.float64)
        array: npt.NDArray[Any] = host.to(dtype).numpy()
        return array


def _parts(plain: torch.Tensor) -> Iterator[torch.Tensor]:
    """Pieces of at most ``CHUNK`` elements; cutting axes copies nothing, whatever the strides."""
    if plain.numel() <= CHUNK:
        yield plain
        return
    axis = int(np.argmax(plain.shape))
    step = max(1, CHUNK * plain.shape[axis] // plain.numel())
    for part in torch.split(plain, step, dim=axis):
        yield from _parts(part)


@contextmanager
def _sentence_for(tensor: torch.Tensor) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise HookvizError(
            f"The numbers of this {type(tensor).__name__} of dtype {dtype_name(tensor)} cannot be read ({reason}): "
            "convert it to a plain float tensor first."
        ) from error
