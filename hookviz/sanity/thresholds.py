from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hookviz.errors import HookvizError

_ABOUT = "about"


def _threshold(value: float, about: str) -> Any:
    """A field with its default and what it means; typed Any, since a dataclass takes it for the default itself."""
    return field(default=value, metadata={_ABOUT: about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is worth a finding; :meth:`about` has each one's meaning, unit and source.

    The numbers without another source were read off hookviz's own measurements: the bundled networks on their natural
    images must lie well inside, the same networks with a planted fault well outside.

    Raises:
        HookvizError: one that is not above 0.
    """

    dead_layer: float = _threshold(
        1.0,
        "Share of dead channels from which a layer counts as dead: all of them.",
    )
    dead_channels: float = _threshold(
        0.5,
        "Share of channels of a rectified layer, zero at every position of every image, that is worth a warning. "
        'Lu et al., "Dying ReLU and Initialization" (2019), speak of a dead layer where all are; trained ImageNet '
        "networks have single dead channels as a rule, and half of a layer never.",
    )
    fewest_images_for_dead: int = _threshold(
        4,
        "Images from which on a share of dead channels is more than a note: one image leaves many channels silent.",
    )
    saturated: float = _threshold(
        0.95,
        "Share of a channel's values at the end of its activation (6 of ReLU6, 0.99 of Tanh) that makes it saturated.",
    )
    saturated_channels: float = _threshold(
        0.5,
        "Share of saturated channels of a layer that is worth a warning.",
    )
    constant_channels: float = _threshold(
        0.5,
        "Share of channels with one value everywhere, not zero, that is worth a warning.",
    )
    duplicated_channels: float = _threshold(
        0.5,
        "Share of channels equal to an earlier one at every position of every image that is worth a warning.",
    )
    gain: float = _threshold(
        50.0,
        "Factor by which a layer's output may be larger than its input (root mean square), or smaller. "
        'Initializations aim at 1 (He et al., "Delving Deep into Rectifiers", 2015); trained layers stay within '
        "about 30.",
    )
    gain_against_peers: float = _threshold(
        100.0,
        "The same factor against the median of the network's layers of that class, where there are at least four.",
    )
    normalization_shift: float = _threshold(
        1.5,
        "Standard deviations by which means of what comes into a batch norm may miss the stored ones (their median).",
    )
    normalization_spread: float = _threshold(
        8.0,
        "Factor by which variances of what comes into a batch norm may differ from the stored ones (their "
        'median). Li et al., "Revisiting Batch Normalization for Practical Domain Adaptation" (2016), measure how '
        "far these statistics of another domain lie apart; one image alone has less variety than the training "
        "set.",
    )
    half_overflow: float = _threshold(
        65504.0,
        "The largest finite number of float16 (IEEE 754).",
    )
    entropy: float = _threshold(
        0.9,
        "Share of the largest possible entropy above which an answer is as good as none.",
    )
    same_answer: float = _threshold(
        0.999,
        "Least cosine between the class scores of different images for the answer not to depend on the image.",
    )
    fewest_images_for_same_answer: int = _threshold(
        8,
        "Images from which on equal answers are a finding.",
    )
    labels_found: float = _threshold(
        0.5,
        "Share of labelled images whose label must be among the five most probable classes (of ten: the first).",
    )
    zero_filters: float = _threshold(
        0.05,
        "Share of filters without any weight but zeros that is worth a warning; training leaves single ones behind.",
    )
    like_initial: float = _threshold(
        0.001,
        "Probability (Kolmogorov-Smirnov) above which values may well come from the initial distribution.",
    )
    structure: float = _threshold(
        6.0,
        "Standard deviations by which the largest singular value of trained weights exceeds that of the same, "
        "shuffled.",
    )

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise HookvizError(f"The threshold {name} must be above 0, not {value}.")

    @classmethod
    def about(cls) -> dict[str, str]:
        """What each threshold means, by its name."""
        return {one.name: one.metadata[_ABOUT] for one in fields(cls)}
