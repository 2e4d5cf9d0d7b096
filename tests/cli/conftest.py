from __future__ import annotations

from tests.models.conftest import torch_home

__all__ = ["torch_home"]
