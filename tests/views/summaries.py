"""Summaries by numpy alone, so that the views are tested without hookviz's statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.types import Histogram, Summary

if TYPE_CHECKING:
    import numpy.typing as npt


def summary_of(values: npt.NDArray[np.floating], bins: int = 10) -> Summary:
    finite = values[np.isfinite(values)].astype(np.float64)
    moments = [float(f(finite)) if finite.size else None for f in (np.mean, np.std, np.min, np.max)]
    counts, edges = np.histogram(finite, bins) if finite.size else (np.empty(0, np.int64), np.empty(0))
    return Summary(
        count=values.size,
        nan=int(np.isnan(values).sum()),
        posinf=int((values == np.inf).sum()),
        neginf=int((values == -np.inf).sum()),
        zeros=int((values == 0).sum()),
        mean=moments[0],
        std=moments[1],
        min=moments[2],
        max=moments[3],
        histogram=Histogram(counts, edges),
    )
