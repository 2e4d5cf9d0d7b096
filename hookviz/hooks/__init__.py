"""Everything that touches a running network."""

from hookviz.hooks.attach import HookHandles, attach, attach_global
from hookviz.hooks.channel_ranking import ChannelRanking, rank_channels
from hookviz.hooks.clamp import FlowingClamp, clamp_flowing_gradients
from hookviz.hooks.clip import ClippedGroup, ClipReport, GradientClipping, clip_parameter_gradients
from hookviz.hooks.cost import HookCost, hook_cost
from hookviz.hooks.distill import Distillation, Feature, distill
from hookviz.hooks.edit import edit
from hookviz.hooks.edit_effect import EditEffect, LayerMove, compare_edits
from hookviz.hooks.edits import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero
from hookviz.hooks.estimate import Estimate, estimate
from hookviz.hooks.grad_inputs import GradInputs, compare_grad_inputs
from hookviz.hooks.gradient_flow import GradientFlow, GradientStatistics, gradient_flow
from hookviz.hooks.gradient_monitor import GradientMonitor
from hookviz.hooks.kernels import ChannelKernel, channel_kernel
from hookviz.hooks.layers import list_layers
from hookviz.hooks.lint import HookFinding, lint_hooks
from hookviz.hooks.listing import HookInfo, list_hooks, remove_hooks
from hookviz.hooks.moves import Move
from hookviz.hooks.nonfinite import find_nonfinite
from hookviz.hooks.nonfinite_report import NonfiniteReport, NonfiniteSite
from hookviz.hooks.operations import list_operations, record_operations
from hookviz.hooks.overwrites import Overwrite, watch_overwrites
from hookviz.hooks.penalty import ActivityPenalty, activity_penalty
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.prune import PrunedParameter, PruningReport, pruning_report
from hookviz.hooks.prune_preview import PrunedMaps, maps_before_and_after
from hookviz.hooks.receptive_field import ReceptiveField, receptive_field
from hookviz.hooks.record import record
from hookviz.hooks.recording import Call, FailedLayer, LayerCalls, Recording, Run
from hookviz.hooks.trace import Firing, debug, trace
from hookviz.hooks.update import own_update

__all__ = [
    "ActivityPenalty",
    "AddNoise",
    "Call",
    "ChannelKernel",
    "ChannelRanking",
    "Clamp",
    "ClipReport",
    "ClippedGroup",
    "Distillation",
    "Edit",
    "EditEffect",
    "Estimate",
    "FailedLayer",
    "Feature",
    "Firing",
    "FlowingClamp",
    "GradInputs",
    "GradientClipping",
    "GradientFlow",
    "GradientMonitor",
    "GradientStatistics",
    "HookCost",
    "HookFinding",
    "HookHandles",
    "HookInfo",
    "KeepOnly",
    "LayerCalls",
    "LayerMove",
    "Move",
    "NonfiniteReport",
    "NonfiniteSite",
    "Overwrite",
    "PrunedMaps",
    "PrunedParameter",
    "PruningReport",
    "ReceptiveField",
    "Recording",
    "ReplaceByMean",
    "Run",
    "Scale",
    "Zero",
    "activity_penalty",
    "attach",
    "attach_global",
    "channel_kernel",
    "clamp_flowing_gradients",
    "clip_parameter_gradients",
    "compare_edits",
    "compare_grad_inputs",
    "debug",
    "distill",
    "edit",
    "estimate",
    "find_nonfinite",
    "gradient_flow",
    "hook_cost",
    "lint_hooks",
    "list_hooks",
    "list_layers",
    "list_operations",
    "maps_before_and_after",
    "own_update",
    "private_copy",
    "pruning_report",
    "rank_channels",
    "receptive_field",
    "record",
    "record_operations",
    "remove_hooks",
    "trace",
    "watch_overwrites",
]
