"""What networks say that do more than name a picture: plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hookviz.types import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """The things found in a picture, the most certain first; finding none is a result like any other.

    ``boxes`` is (N, 4) float32: left, upper, right, lower in the picture's pixels. ``classes`` is (N,), ``scores`` (N,)
    from 0 to 1, ``labels`` the classes' names. ``masks`` is (N, H, W), True inside the thing; ``keypoints`` is
    (N, K, 3) float32: x, y, and 1 where the point is visible. Both are None where the network has none.
    """

    boxes: npt.NDArray[np.float32]
    classes: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    scores: npt.NDArray[np.float32]
    masks: BoolArray | None = None
    keypoints: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        count = len(self.scores)
        if self.boxes.shape != (count, 4):
            raise ValueError(f"boxes must be ({count}, 4) for {count} scores, got shape {self.boxes.shape}")
        if not len(self.classes) == len(self.labels) == count:
            raise ValueError(f"{count} scores need as many classes and labels, got {len(self.classes)}")

    def __len__(self) -> int:
        """How many things there are."""
        return len(self.scores)

    def above(self, score: float) -> Detections:
        """Those with at least that ``score``."""
        kept = self.scores >= score
        return Detections(
            boxes=self.boxes[kept],
            classes=self.classes[kept],
            labels=tuple(label for label, keep in zip(self.labels, kept, strict=True) if keep),
            scores=self.scores[kept],
            masks=None if self.masks is None else self.masks[kept],
            keypoints=None if self.keypoints is None else self.keypoints[kept],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ClassMap:
    """One class per pixel: ``classes`` is (H, W) indices into ``categories``, of the picture as the network saw it."""

    classes: npt.NDArray[np.int64]
    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.classes.ndim != 2:
            raise ValueError(f"classes must be (height, width), got shape {self.classes.shape}")

    @property
    def shares(self) -> dict[str, float]:
        """The share of the pixels per class that occurs, 0 to 1, largest first."""
        indices, counts = np.unique(self.classes, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return {self.categories[indices[one]]: float(counts[one] / self.classes.size) for one in order}


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Where each pixel of the first frame went: ``vectors`` is (2, H, W) float32, to the right and down, in pixels."""

    vectors: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 3 or len(self.vectors) != 2:
            raise ValueError(f"vectors must be (2, height, width), got shape {self.vectors.shape}")
