"""One intervention made twice, by a hook and by torch.fx: channel 3 of ``conv2`` becomes zero.

Which to use when:

- A hook changes what a layer returns while the network runs as it is. Use it where the change is for a while (a
  ``with`` block, and the network is as before), where the network branches on its data, which fx cannot trace, and
  where every layer is a module. What is a function in between (``F.relu``, ``torch.cat``, ``+``) has no hook.
- torch.fx writes the network down as a graph and gives a new one with the change built in. Use it where the change is
  to stay, to be saved, scripted or exported, or where it concerns a function in between. Train or eval behaviour that
  depends on Python values is fixed at the moment of tracing.

Run it from the top of the repository: ``python -m examples.intervene_twice``.
"""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

import hookviz

LAYER = "conv2"
CHANNEL = 3


def by_hook(network: nn.Module, images: Tensor) -> Tensor:
    """The output with the channel at zero while this runs; the network is as before afterwards."""
    with hookviz.edit(network, {LAYER: hookviz.Zero(CHANNEL)}):
        output: Tensor = network(images)
    return output


def by_fx(network: nn.Module) -> fx.GraphModule:
    """A new network, sharing the weights, in whose graph zeros are filled into the layer's output."""
    changed = fx.symbolic_trace(network)
    (layer,) = (node for node in changed.graph.nodes if node.op == "call_module" and node.target == LAYER)
    channels = network.get_parameter(f"{LAYER}.bias").numel()
    changed.register_buffer("switched_off", (torch.arange(channels) == CHANNEL).view(-1, 1, 1))
    with changed.graph.inserting_after(layer):
        switched_off = changed.graph.get_attr("switched_off")
    with changed.graph.inserting_after(switched_off):
        filled = changed.graph.call_function(torch.masked_fill, (layer, switched_off, 0))
    layer.replace_all_uses_with(filled, delete_user_cb=lambda user: user is not filled)
    changed.recompile()
    return changed


def main() -> None:
    """Make the intervention both ways and compare."""
    model = hookviz.load_model("simple_cnn", device="cpu")
    images = model.prepare(hookviz.load_sample("digit_3"))
    with torch.no_grad():
        untouched, hooked, rewritten = model.module(images), by_hook(model.module, images), by_fx(model.module)(images)
    print(f"the intervention changes the output: {not torch.equal(untouched, hooked)}")  # noqa: T201  # it prints
    print(f"hook and fx agree to the last bit: {torch.equal(hooked, rewritten)}")  # noqa: T201  # as above


if __name__ == "__main__":
    main()
