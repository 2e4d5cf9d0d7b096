"""What was checked, where and with what, so that a report can be told from another."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookviz.models import Model

_PACKAGES = ("torch", "torchvision", "timm", "numpy", "pillow")


@dataclass(frozen=True, slots=True)
class NetworkIdentity:
    """The network: ``sha256`` is of every parameter and buffer with its name, dtype and shape."""

    name: str
    class_name: str
    weights: str
    source: str
    parameters: int
    dtype: str
    device: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Environment:
    """Versions, by package, and the machine."""

    versions: tuple[tuple[str, str], ...]
    machine: str


def identify(model: Model) -> NetworkIdentity:
    """The identity of a network as it is now."""
    parameters = [one for one in model.module.parameters() if not is_lazy(one)]
    dtypes = sorted({str(one.dtype).removeprefix("torch.") for one in parameters})
    return NetworkIdentity(
        name=model.name,
        class_name=type(model.module).__name__,
        weights=model.weights,
        source=model.source,
        parameters=sum(one.numel() for one in parameters),
        dtype=", ".join(dtypes) or "no parameters",
        device=str(model.device),
        sha256=weights_digest(model.module),
    )


def weights_digest(module: nn.Module) -> str:
    """SHA-256 of the names, dtypes, shapes and values of all parameters and buffers, in the order of the network."""
    digest = hashlib.sha256()
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        digest.update(name.encode())
        if not is_lazy(tensor) and not tensor.is_meta:
            digest.update(f" {tensor.dtype} {tuple(tensor.shape)} ".encode())
            digest.update(_bytes(tensor))
    return digest.hexdigest()


def environment() -> Environment:
    """Where this runs."""
    found = [("python", platform.python_version())]
    for package in _PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:  # timm may be left out
            continue
    processor = platform.processor() or platform.machine()
    return Environment(tuple(found), f"{platform.system()} {platform.machine()}, {processor}, {_threads()}")


def _threads() -> str:
    count = torch.get_num_threads()
    return f"{count} thread{'' if count == 1 else 's'}"


def _bytes(tensor: Tensor) -> bytes:
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    raw = plain.cpu().reshape(-1).contiguous().view(torch.uint8)
    return bytes(raw.numpy())
