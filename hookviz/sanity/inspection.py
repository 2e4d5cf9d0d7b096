"""One pass over the images, a step for each, that can be stopped, kept and taken up again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks import list_layers, list_operations, private_copy
from hookviz.hooks.failure import failed_layer
from hookviz.hooks.names import LayerNames
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.recording import FailedLayer
from hookviz.hooks.structure import each_tensor
from hookviz.sanity.activations import ACTIVATION_FUNCTIONS
from hookviz.sanity.answers import Answers, label_index, scores_in
from hookviz.sanity.findings import Finding
from hookviz.sanity.forward_findings import failed_finding, nonfinite_finding
from hookviz.sanity.items import Item
from hookviz.sanity.layer_stream import LayerStream, LayerTally, Place
from hookviz.sanity.report import CheckedImage, Unreadable
from hookviz.sanity.subject import Subject
from hookviz.types import LayerInfo

SEED = 0
"""Of the random state before each image, so that a network with dropout on gives the same numbers again."""


class Inspection:
    """The images seen so far and what was measured on them.

    A private copy of the network runs, in the train and eval flags that the network has; it is left as it was found.
    ``stream`` is None before the first image that could be used.
    """

    def __init__(self, subject: Subject, items: Sequence[Item]) -> None:
        self.subject = subject
        self.items = tuple(items)
        self.done = 0
        self.images: list[CheckedImage] = []
        self.unreadable: list[Unreadable] = []
        self.answers = Answers()
        self.stream: LayerStream | None = None
        self.layers: tuple[LayerInfo, ...] = ()
        self.findings: list[Finding] = []
        """Those that a forward itself brought to light."""
        self.unknown_labels: list[str] = []
        """Labels that name no class of the network."""
        self.failed = False
        """Whether the network cannot run at all, so that there is nothing more to see."""
        self.in_eval_mode = False
        """Whether it goes on in eval mode, since the network could not run in its own."""
        self._private = private_copy(subject.module)

    @property
    def finished(self) -> bool:
        """Whether every image was looked at."""
        return self.failed or self.done >= len(self.items)

    def step(self) -> None:
        """Look at the next image; one that cannot be used is noted, with the reason."""
        item = self.items[self.done]
        self.done += 1
        try:
            content = item.read()
            batch = self.subject.batch(content)
        except HookvizError as error:
            self.unreadable.append(Unreadable(item.name, str(error)))
            return
        except MemoryError:
            self.unreadable.append(Unreadable(item.name, "There is not enough memory for it."))
            return
        if self._run(item, batch):
            self.images.append(CheckedImage(item.name, content.sha256))

    def _run(self, item: Item, batch: Tensor) -> bool:
        arguments = self.subject.arguments(batch)
        try:
            output = self._forward(arguments)
        except Exception as error:  # noqa: BLE001  # a network of one's own may raise anything
            return self._not_run(item, batch, error)
        scores = scores_in(output) if self.subject.reads_classes else None
        if scores is not None:
            label = label_index(item.label, len(scores), self.subject.model.categories)
            if item.label is not None and label is None:
                self.unknown_labels.append(str(item.label))
            self.answers.add(item.name, scores, label)
        self._look_for_nonfinite(item, arguments)
        return True

    def _forward(self, arguments: tuple[Any, ...]) -> Any:
        if self.stream is None:
            self.stream = self._begin(arguments)
        with random_state_kept(self._private), torch.no_grad():
            torch.manual_seed(SEED)
            with self.stream.watching(self._private):
                return self._private(*each_tensor(arguments, Tensor.clone))

    def _begin(self, arguments: tuple[Any, ...]) -> LayerStream:
        self.layers = tuple(list_layers(self.subject.module, *arguments))
        operations = [
            one for one in list_operations(self.subject.module, *arguments) if one.class_name in ACTIVATION_FUNCTIONS
        ]
        return LayerStream([one for one in self.layers if one.calls and self._is_watched(one)], operations)

    def _is_watched(self, info: LayerInfo) -> bool:
        """Whether a layer computes something itself, rather than only hand on what the layers inside it do."""
        module = self.subject.module.get_submodule(info.name)
        if isinstance(module, nn.Identity):
            return False
        inside = any(True for _ in module.children())
        return not inside or bool(module._parameters) or bool(module._buffers)

    def _not_run(self, item: Item, batch: Tensor, error: Exception) -> bool:
        """Say what failed; a network in train mode gets a second chance in eval mode."""
        failed = self._failed_layer(batch)
        said = str(failed or f"{type(error).__name__}: {error}").splitlines()[0].rstrip(".")
        training = [name for name, one in self._private.named_modules() if one.training]
        if self.images:
            self.unreadable.append(Unreadable(item.name, f"The network cannot run on it: {said}."))
            return False
        if not any(one.kind == "forward_failed" for one in self.findings):
            layer = None if failed is None else failed.layer
            self.findings.append(failed_finding(item.name, said, layer, training=bool(training)))
        self.stream = None
        if training:
            self.go_on_in_eval_mode()
            return self._run(item, batch)
        self.failed = len(self.items) == 1 or self.done >= 3
        self.unreadable.append(Unreadable(item.name, f"The network cannot run on it: {said}."))
        return False

    def _failed_layer(self, batch: Tensor) -> FailedLayer | None:
        """Where the forward breaks off, by running it once more with nothing else around it."""
        try:
            with random_state_kept(self._private), torch.no_grad():
                self._private(*self.subject.arguments(batch))
        except Exception as error:  # noqa: BLE001  # whatever it was the first time
            return failed_layer(error, LayerNames(self._private))
        return None

    def _look_for_nonfinite(self, item: Item, arguments: tuple[Any, ...]) -> None:
        """Where NaN or infinity begins, on the first image that shows any."""
        stream = self.stream
        if stream is None or any(one.kind == "nonfinite" for one in self.findings):
            return
        if not any(one.summary.nonfinite for one in stream.tallies.values()):
            return
        one = nonfinite_finding(self._private, arguments, item.name)
        if one is not None:
            self.findings.append(one)

    def take_up(self, tallies: dict[Place, LayerTally], images: int) -> None:
        """Go on from what was measured before; the network's layers are found again with the first image used then.

        Raises:
            HookvizError: that image cannot be read any more.
        """
        self.stream = self._begin(self.first_arguments())
        self.stream.tallies, self.stream.images = tallies, images

    def first_arguments(self) -> tuple[Any, ...]:
        """What the network is called with for the first image that could be used.

        Raises:
            HookvizError: it cannot be read any more.
        """
        first = next(item for item in self.items if item.name == self.images[0].name)
        return self.subject.arguments(self.subject.batch(first.read()))

    def go_on_in_eval_mode(self) -> None:
        """Run the images to come in eval mode."""
        self.in_eval_mode = True
        self._private = self.private()

    def private(self) -> nn.Module:
        """A copy of the network in eval mode, to try something else on."""
        return private_copy(self.subject.module).eval()
