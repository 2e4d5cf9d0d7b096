"""Where NaN and Inf were seen, as data and as sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Direction: TypeAlias = Literal["forward", "backward"]
Role: TypeAlias = Literal["input", "parameter", "producer", "loss", "passed_on"]


@dataclass(frozen=True, slots=True)
class NonfiniteSite:
    """A tensor that holds NaN or Inf, and what its layer has to do with that.

    ``role`` is ``producer`` for a layer that was given finite values only, and whose parameters are finite;
    ``parameter`` where one of them is not, named in ``parameter``; ``input`` for what the network was called with;
    ``loss`` for what the loss made of finite values; ``passed_on`` for a layer that was given non-finite values, or
    that contains the one that made them. ``path`` says where in the output the tensor sits (for ``input``, among the
    arguments; backwards, among the gradients of the arguments, or the name of a parameter). ``before`` is the layer
    that was given the values, where the producer made them in its own ``forward`` between other layers.
    """

    direction: Direction
    role: Role
    layer: str
    call: int
    path: str
    nan: int
    posinf: int
    neginf: int
    parameter: str = ""
    before: str = ""

    def __str__(self) -> str:
        counts = {"NaN": self.nan, "Inf": self.posinf, "-Inf": self.neginf}
        what = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        layer = f"layer {self.layer!r} (call {self.call})" if self.layer else f"the network itself (call {self.call})"
        where = "the backward pass" if self.direction == "backward" else "the forward pass"
        who = {
            "input": f"argument {self.path!r} of the network holds them",
            "parameter": f"parameter {self.parameter!r} of {layer} holds them",
            "producer": f"{layer} makes them of finite values{f', before {self.before!r}' if self.before else ''}",
            "loss": "the loss makes them of finite values",
            "passed_on": f"{layer} passes them on",
        }[self.role]
        return f"{what} in {where}: {who}."


@dataclass(frozen=True, slots=True)
class NonfiniteReport:
    """Every place where NaN or Inf was seen, in the order of the run; false where there is none.

    ``parameters`` names all parameters and buffers that hold some, whether or not that showed.
    """

    sites: tuple[NonfiniteSite, ...]
    parameters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sites)

    @property
    def first(self) -> NonfiniteSite | None:
        """Where it began: the first site that did not merely pass it on."""
        return next((site for site in self.sites if site.role != "passed_on"), None)

    @property
    def forward(self) -> NonfiniteSite | None:
        """Where it began in the forward pass."""
        return next((one for one in self.sites if one.role != "passed_on" and one.direction == "forward"), None)

    @property
    def backward(self) -> NonfiniteSite | None:
        """Where it began in the backward pass."""
        return next((one for one in self.sites if one.role != "passed_on" and one.direction == "backward"), None)

    def __str__(self) -> str:
        if self.first:
            return str(self.first)
        unused = f" (but there are in {', '.join(self.parameters)}, which did not show)" if self.parameters else ""
        return f"every value was finite{unused}."
