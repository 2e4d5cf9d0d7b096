"""Everything that touches a running network."""

from hookviz.hooks.attach import HookHandles, attach
from hookviz.hooks.layers import list_layers
from hookviz.hooks.operations import list_operations, record_operations
from hookviz.hooks.overwrites import Overwrite, watch_overwrites
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.record import record
from hookviz.hooks.recording import Call, FailedLayer, LayerCalls, Recording, Run

__all__ = [
    "Call",
    "FailedLayer",
    "HookHandles",
    "LayerCalls",
    "Overwrite",
    "Recording",
    "Run",
    "attach",
    "list_layers",
    "list_operations",
    "private_copy",
    "record",
    "record_operations",
    "watch_overwrites",
]
