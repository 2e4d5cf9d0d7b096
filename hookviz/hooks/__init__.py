"""Everything that touches a running network."""

from hookviz.hooks.attach import HookHandles, attach, attach_global
from hookviz.hooks.edit import edit
from hookviz.hooks.edits import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero
from hookviz.hooks.layers import list_layers
from hookviz.hooks.listing import HookInfo, list_hooks, remove_hooks
from hookviz.hooks.operations import list_operations, record_operations
from hookviz.hooks.overwrites import Overwrite, watch_overwrites
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.record import record
from hookviz.hooks.recording import Call, FailedLayer, LayerCalls, Recording, Run
from hookviz.hooks.trace import Firing, debug, trace

__all__ = [
    "AddNoise",
    "Call",
    "Clamp",
    "Edit",
    "FailedLayer",
    "Firing",
    "HookHandles",
    "HookInfo",
    "KeepOnly",
    "LayerCalls",
    "Overwrite",
    "Recording",
    "ReplaceByMean",
    "Run",
    "Scale",
    "Zero",
    "attach",
    "attach_global",
    "debug",
    "edit",
    "list_hooks",
    "list_layers",
    "list_operations",
    "private_copy",
    "record",
    "record_operations",
    "remove_hooks",
    "trace",
    "watch_overwrites",
]
