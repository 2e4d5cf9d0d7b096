from __future__ import annotations

from dataclasses import asdict, dataclass

from hookviz.errors import HookvizError


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is worth a finding. Each has its unit, and where it comes from.

    The numbers without another source were read off hookviz's own measurements: the bundled networks on their natural
    images must lie well inside, the same networks with a planted fault well outside.
    """

    dead_layer: float = 1.0
    """Share of dead channels from which a layer counts as dead: all of them."""

    dead_channels: float = 0.5
    """Share of channels of a rectified layer, zero at every position of every image, that is worth a warning.

    Lu et al., "Dying ReLU and Initialization" (2019), speak of a dead layer where all are; trained ImageNet networks
    have single dead channels as a rule, and half of a layer never.
    """

    fewest_images_for_dead: int = 4
    """Images from which on a share of dead channels is more than a note: one image leaves many channels silent."""

    saturated: float = 0.95
    """Share of a channel's values at the end of its activation (6 of ReLU6, 0.99 of Tanh) that makes it saturated."""

    saturated_channels: float = 0.5
    """Share of saturated channels of a layer that is worth a warning."""

    constant_channels: float = 0.5
    """Share of channels with one value everywhere, not zero, that is worth a warning."""

    duplicated_channels: float = 0.5
    """Share of channels equal to an earlier one at every position of every image that is worth a warning."""

    gain: float = 50.0
    """Factor by which a layer's output may be larger than its input (root mean square), or smaller.

    Initializations aim at 1 (He et al., "Delving Deep into Rectifiers", 2015); trained layers stay within about 30.
    """

    gain_against_peers: float = 100.0
    """The same factor against the median of the network's layers of that class, where there are at least four."""

    normalization_shift: float = 1.5
    """Standard deviations by which means of what comes into a batch norm may miss the stored ones (their median)."""

    normalization_spread: float = 8.0
    """Factor by which variances of what comes into a batch norm may differ from the stored ones (their median).

    Li et al., "Revisiting Batch Normalization for Practical Domain Adaptation" (2016), measure how far these statistics
    of another domain lie apart; one image alone has less variety than the training set.
    """

    half_overflow: float = 65504.0
    """The largest finite number of float16 (IEEE 754)."""

    entropy: float = 0.9
    """Share of the largest possible entropy above which an answer is as good as none."""

    same_answer: float = 0.999
    """Least cosine between the class scores of different images for the answer not to depend on the image."""

    fewest_images_for_same_answer: int = 8
    """Images from which on equal answers are a finding."""

    labels_found: float = 0.5
    """Share of labelled images whose label must be among the five most probable classes (of ten: the first)."""

    zero_filters: float = 0.05
    """Share of filters without any weight but zeros that is worth a warning; training leaves single ones behind."""

    like_initial: float = 0.001
    """Probability (Kolmogorov-Smirnov) above which values may well come from the initial distribution."""

    structure: float = 6.0
    """Standard deviations by which the largest singular value of trained weights exceeds that of the same, shuffled."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise HookvizError(f"The threshold {name} must be above 0, not {value}.")
