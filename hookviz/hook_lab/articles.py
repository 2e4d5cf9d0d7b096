"""What widely read articles get wrong about hooks, each with code that shows what is so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A claim as articles make it, what is so, and code that shows it: it prints ``printed``."""

    claim: str
    truth: str
    code: str
    printed: str


NOTES = (
    Note(
        "“grad_input holds the gradients of the inputs, the weights and the biases.”",
        "It holds the gradients of the module’s inputs alone. The other is what the deprecated register_backward_hook "
        "gives, which torch still runs. For weights there is Tensor.register_post_accumulate_grad_hook.",
        """\
import torch
from torch import nn


def look(module, grad_input, grad_output):
    print(len(grad_input), grad_input[0].shape)


def arrived(weight):
    print("weight", weight.grad.shape)


layer = nn.Linear(4, 2)
layer.register_full_backward_hook(look)
layer.weight.register_post_accumulate_grad_hook(arrived)
layer(torch.ones(1, 4, requires_grad=True)).sum().backward()
""",
        "weight torch.Size([2, 4])\n1 torch.Size([1, 4])\n",
    ),
    Note(
        "“Write grad_input[0] = … in the hook to change the gradient.”",
        "It is a tuple, and assigning to its items raises. Return a new tuple instead.",
        """\
import torch
from torch import nn


def assign(module, grad_input, grad_output):
    try:
        grad_input[0] = grad_input[0] * 0
    except TypeError as error:
        print(error)
    return (torch.zeros_like(grad_input[0]),)


layer = nn.Linear(4, 2)
layer.register_full_backward_hook(assign)
image = torch.ones(1, 4, requires_grad=True)
layer(image).sum().backward()
print(image.grad)
""",
        "'tuple' object does not support item assignment\ntensor([[0., 0., 0., 0.]])\n",
    ),
    Note(
        "“Take it off with module.remove_hook(…)”, “use hooks.add_hook(…)”",
        "Neither exists. Registering gives a handle, and handle.remove() takes the hook off.",
        """\
import torch
from torch import nn
from torch.utils import hooks


def look(module, args, output):
    print("fired")


layer = nn.Linear(4, 2)
print(hasattr(layer, "remove_hook"), hasattr(hooks, "add_hook"))
handle = layer.register_forward_hook(look)
layer(torch.ones(1, 4))
handle.remove()
layer(torch.ones(1, 4))
""",
        "False False\nfired\n",
    ),
    Note(
        "“A hook on conv2 shows what comes out of the convolution and its ReLU.”",
        "A module’s hook sees what that module returned. Where the network calls F.relu behind it, the hook is before "
        "the ReLU and sees negative values.",
        """\
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv2 = nn.Conv2d(1, 1, 1, bias=False)
        nn.init.constant_(self.conv2.weight, -1.0)

    def forward(self, image):
        return F.relu(self.conv2(image))


def look(module, args, output):
    print("hook:", output.min().item())


net = Net()
net.conv2.register_forward_hook(look)
print("behind F.relu:", net(torch.ones(1, 1, 2, 2)).min().item())
""",
        "hook: -1.0\nbehind F.relu: 0.0\n",
    ),
)
