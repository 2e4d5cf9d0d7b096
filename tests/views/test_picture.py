from __future__ import annotations

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.views import png_bytes, rgb_pixels
from tests.views.decoding import rgb

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_every_pixel_value_survives_normalising_and_back() -> None:
    """C79: within ±1/255; here exactly."""
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    image[0, 0], image[0, 1] = 0, 255
    prepared = ((image / 255 - MEAN) / STD).transpose(2, 0, 1).astype(np.float32)
    assert np.array_equal(rgb_pixels(prepared, MEAN, STD), image)


def test_values_outside_the_range_are_clipped_not_wrapped() -> None:
    """C79: a raw map in -3..5, and NaN."""
    prepared = np.array([-3, -0.001, 0.5, 1.001, 5, np.nan, np.inf, -np.inf]).reshape(1, 1, 8)
    pixels = rgb_pixels(prepared, [0.0], [1.0])
    assert pixels[0].T.tolist() == [[0, 0, 128, 255, 255, 0, 255, 0]] * 3


def test_a_red_left_half_stays_red_and_left() -> None:
    """C80: no exchange of red and blue; C26: nor of width and height."""
    prepared = np.zeros((3, 4, 10), np.float32)
    prepared[0, :, :5] = 1
    pixels = rgb_pixels(prepared, [0, 0, 0], [1, 1, 1])
    assert pixels.shape == (4, 10, 3)
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[0, 9].tolist() == [0, 0, 0]


def test_a_png_holds_the_very_pixels() -> None:
    image = np.random.default_rng(1).integers(0, 256, (4, 10, 3)).astype(np.uint8)
    assert np.array_equal(rgb(png_bytes(image)), image)


@pytest.mark.parametrize("shape", [(4, 5, 5), (5, 5), (1, 3, 5, 5)])
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ViewError, match="no RGB or grey image"):
        rgb_pixels(np.zeros(shape, np.float32), MEAN, STD)
