"""Everything the page remembers: its session keys, its defaults, and the address that restores a view."""

from hookviz.ui.state.address import begin, write_address
from hookviz.ui.state.choices import chosen, chosen_order, display, options
from hookviz.ui.state.image import image_source, use_image_from
from hookviz.ui.state.keys import (
    CAMERA,
    CMAP,
    DEFAULT_WEIGHTS,
    LAYERS,
    MODEL,
    ROBUST,
    SAMPLE,
    SCALE,
    SORT,
    TREE,
    UPLOAD,
    WEIGHTS,
)
from hookviz.ui.state.layers import choose_layers, chosen_layers, settle_layers, take_choice, tree_turn
from hookviz.ui.state.notes import changed, note, notes
from hookviz.ui.state.settling import ask_for, asked_for, settle_choice, settle_index, settle_value, settled
from hookviz.ui.state.weights import choose_weights, model_changed, settle_weights

__all__ = [
    "CAMERA",
    "CMAP",
    "DEFAULT_WEIGHTS",
    "LAYERS",
    "MODEL",
    "ROBUST",
    "SAMPLE",
    "SCALE",
    "SORT",
    "TREE",
    "UPLOAD",
    "WEIGHTS",
    "ask_for",
    "asked_for",
    "begin",
    "changed",
    "choose_layers",
    "choose_weights",
    "chosen",
    "chosen_layers",
    "chosen_order",
    "display",
    "image_source",
    "model_changed",
    "note",
    "notes",
    "options",
    "settle_choice",
    "settle_index",
    "settle_layers",
    "settle_value",
    "settle_weights",
    "settled",
    "take_choice",
    "tree_turn",
    "use_image_from",
    "write_address",
]
