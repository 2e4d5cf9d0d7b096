"""From what was measured to what is said."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hookviz.channels import dead_channels_apply
from hookviz.errors import HookvizError
from hookviz.hooks.preserve import random_state_kept
from hookviz.models import Model, load_model
from hookviz.sanity.answers import Steadiness, answer_findings, class_of, steadiness, unknown_label_findings
from hookviz.sanity.findings import Finding, worst_first
from hookviz.sanity.identity import environment, identify
from hookviz.sanity.input_findings import Looked, input_findings
from hookviz.sanity.input_trials import Feeding, InputTrial
from hookviz.sanity.inspection import Inspection
from hookviz.sanity.items import Content
from hookviz.sanity.layer_findings import FEWEST_VALUES, layer_findings
from hookviz.sanity.layer_stream import BATCH_NORM, LayerStream, LayerTally, Place
from hookviz.sanity.likeness import compare_layers
from hookviz.sanity.norm_findings import mode_findings, norm_findings, norm_fits
from hookviz.sanity.report import Compared, LayerRow, Report
from hookviz.sanity.thresholds import Thresholds
from hookviz.sanity.unused import unused_findings
from hookviz.sanity.weight_findings import is_untrained, weight_findings

FIRST_IMAGES = 8
"""How many images are looked at more closely: their inputs, and what small changes do to the answers."""

COMPARED_IMAGES = 4
"""How many images layers are compared on."""

_EARLY = 3
"""Batch norms that an input shows in first."""

Against = Model | nn.Module | Literal["untrained"] | None


def conclude(inspection: Inspection, thresholds: Thresholds, *, against: Against = "untrained") -> Report:
    """The report on an inspection as far as it went."""
    subject, stream = inspection.subject, inspection.stream
    first = _first_contents(inspection)
    twin = untrained_twin(subject.model)
    weights = weight_findings(subject.module, twin, thresholds)
    untrained = is_untrained(weights)
    fed = [subject.batch(content) for content in first]
    inputs = list(input_findings(_looked(first, fed), subject.recipe, lambda some: _misfit(inspection, some)))
    wrong_input = any(one.severity != "note" for one in inputs)
    layers: list[Finding] = []
    if stream is not None and stream.images:
        fits = norm_fits(subject.module, stream)
        layers = [
            *layer_findings(stream, thresholds),
            *norm_findings(fits, thresholds, explained=wrong_input or untrained),
            *unused_findings(subject.module, inspection.layers, [subject.arguments(one) for one in fed[:1]]),
        ]
    head = _head(inspection)
    answers = answer_findings(inspection.answers, subject.model.categories, head, thresholds, untrained=untrained)
    unknown = unknown_label_findings(inspection.unknown_labels, inspection.answers.classes)
    found = [*inputs, *inspection.findings, *weights, *mode_findings(subject.module), *layers, *answers, *unknown]
    return Report(
        network=identify(subject.model),
        environment=environment(),
        findings=worst_first(_softened(found) if untrained else found),
        images=tuple(inspection.images),
        unreadable=tuple(inspection.unreadable),
        layers=tuple(layer_rows(stream)) if stream is not None else (),
        categories=subject.model.categories,
        answers=tuple(inspection.answers.each),
        steadiness=tuple(_steadiness(inspection, fed)),
        input_trials=tuple(_trials(inspection, first, fed)),
        compared=_compared(inspection, fed[:COMPARED_IMAGES], twin, against),
        thresholds=thresholds,
        complete=inspection.finished,
    )


def layer_rows(stream: LayerStream) -> Iterator[LayerRow]:
    """One row for each tensor, in the order of the run."""
    for place, tally in stream.tallies.items():
        yield _row(stream, place, tally)


def _row(stream: LayerStream, place: Place, tally: LayerTally) -> LayerRow:
    info, channels = stream.info(place.layer), tally.channels
    judged = channels if channels is not None and channels.elements >= FEWEST_VALUES else None
    return LayerRow(
        layer=place.layer,
        class_name=info.class_name,
        call=place.call + 1,
        part=place.path,
        shape=tally.shape,
        summary=tally.summary.summary(),
        channels=None if channels is None else len(channels.values),
        dead=None if judged is None or not dead_channels_apply(info.class_name) else int(judged.dead.sum()),
        constant=None if judged is None else int(judged.constant.sum()),
        duplicated=None if judged is None else int(judged.duplicated.sum()),
        gain=tally.gain,
    )


def _softened(findings: Sequence[Finding]) -> list[Finding]:
    """Of an untrained network nothing else is expected of the layers: what they show becomes a note."""
    scales, channels = {"exploding_scale", "collapsing_scale"}, ("dead", "constant", "duplicated")
    expected = {"dead_layer"} | scales | {f"{one}_channels" for one in channels}
    return [replace(one, severity="note") if one.kind in expected else one for one in findings]


def _first_contents(inspection: Inspection) -> list[Content]:
    """The first images again, of those that could be used."""
    wanted = {one.name for one in inspection.images[:FIRST_IMAGES]}
    contents = []
    for item in inspection.items:
        if item.name in wanted:
            try:
                contents.append(item.read())
            except HookvizError:  # a file that went meanwhile
                continue
        if len(contents) == len(wanted):
            break
    return contents


def _looked(first: Sequence[Content], fed: Sequence[Tensor]) -> Looked:
    pictures = tuple(one.value for one in first if not isinstance(one.value, Tensor))
    return Looked(tuple(fed), pictures)


def _misfit(inspection: Inspection, fed: Sequence[Tensor]) -> float | None:
    """How badly inputs fit the first batch norms: mean shift in deviations, and the logarithm of the variances."""
    private = inspection.private()
    norms = [
        info for info in inspection.layers if info.calls and isinstance(private.get_submodule(info.name), BATCH_NORM)
    ][:_EARLY]
    if not norms:
        return None
    stream = LayerStream(norms, [])
    with random_state_kept(private), torch.no_grad():
        for batch in fed[:COMPARED_IMAGES]:
            with stream.watching(private):
                private(*inspection.subject.arguments(batch))
    fits = norm_fits(private, stream)
    if not fits:
        return None
    return sum(one.shift + math.log(one.spread) for one in fits) / len(fits)


def _head(inspection: Inspection) -> str:
    """The layer that gives the scores: the last one that returns as many numbers as there are classes."""
    classes = inspection.answers.classes
    shapes = [
        (place.layer, tally.shape)
        for place, tally in (inspection.stream.tallies.items() if inspection.stream else ())
        if tally.incoming.count
    ]
    return next((layer for layer, shape in reversed(shapes) if classes and classes in shape), "")


def _steadiness(inspection: Inspection, fed: Sequence[Tensor]) -> list[Steadiness]:
    if not inspection.answers.each:
        return []
    private, subject = inspection.private(), inspection.subject
    with random_state_kept(private), torch.no_grad():
        return steadiness(fed, lambda batch: class_of(private(*subject.arguments(batch))))


def _trials(inspection: Inspection, first: Sequence[Content], fed: Sequence[Tensor]) -> list[InputTrial]:
    subject, stream = inspection.subject, inspection.stream
    picture = next((one.value for one in first if not isinstance(one.value, Tensor)), None)
    if subject.recipe is None or picture is None or stream is None or not inspection.answers.each:
        return []
    start = next((place.layer for place, tally in stream.tallies.items() if tally.incoming.count), "")
    feeding = Feeding(inspection.private(), start, subject.arguments)
    own = fed[0] if subject.prepare is not None else None
    with random_state_kept(feeding.private), torch.no_grad():
        return feeding.trials(picture, subject.recipe, own)


def _compared(
    inspection: Inspection, fed: Sequence[Tensor], twin: nn.Module | None, against: Against
) -> Compared | None:
    if against is None or not fed or inspection.stream is None:
        return None
    subject = inspection.subject
    if isinstance(against, Model):
        name, other = f"{against.name} ({against.weights})", against.module
    elif isinstance(against, nn.Module):
        name, other = type(against).__name__, against
    else:
        if twin is None:
            return None
        name, other = "the same network untrained", twin
    inputs = [subject.arguments(batch) for batch in fed]
    return Compared(name, tuple(compare_layers(subject.module, other, inputs)))


def untrained_twin(model: Model) -> nn.Module | None:
    """The same architecture with seeded random values; None where nobody can say what those are.

    Of the catalogue it is built anew, of a network of one's own every layer that can is reset.
    """
    twin: nn.Module | None
    try:
        twin = load_model(model.name, None, model.device).module
    except HookvizError:
        twin = _reset(model.module)
    dtype = next((one.dtype for one in model.module.parameters() if one.is_floating_point()), None)
    return twin if twin is None or dtype is None else twin.to(model.device, dtype)


def _reset(module: nn.Module) -> nn.Module | None:
    try:
        twin = copy.deepcopy(module)
    except Exception:  # noqa: BLE001  # a network of one's own may refuse in any way
        return None
    some = False
    with random_state_kept(twin):
        torch.manual_seed(0)
        for layer in twin.modules():
            reset: Any = getattr(layer, "reset_parameters", None) or getattr(layer, "_reset_parameters", None)
            if callable(reset):
                reset()
                some = True
    return twin.eval() if some else None
