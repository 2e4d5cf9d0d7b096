"""Train ``simple_cnn`` on scikit-learn's handwritten digits and store its weights in ``assets/``.

The recipe: 1797 pictures of 8x8 pixels with levels 0..16, bright on black, are scaled to 0..255. The network is shown
each in two ways: as it is, and enlarged to 256x256 with hard edges, so that it knows smooth and blocky digits. Both are
prepared as any image is: bilinear to 32x32, mean and standard deviation 0.5. Every fifth picture is held out. Ten
epochs of Adam, batches of 32, cross entropy.

Run it from the top of the repository: ``python -m scripts.train_simple_cnn``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save
from sklearn.datasets import load_digits
from torch import Tensor, nn

from hookviz.models import initialization, simple_cnn

SEED = 0
EPOCHS = 10
BATCH_SIZE = 32
WEIGHTS = Path(__file__).parent.parent / "assets" / simple_cnn.WEIGHTS_FILE


def digit_pictures() -> tuple[list[Image.Image], Tensor]:
    """The data set: RGB pictures of 8x8 pixels, and their digits."""
    levels, digits = load_digits(return_X_y=True)
    pixels = np.rint(levels.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)
    return [Image.fromarray(one).convert("RGB") for one in pixels], torch.from_numpy(digits)


def enlarged(picture: Image.Image) -> Image.Image:
    """The picture as 256x256 pixels with hard edges, as a page shows it."""
    return picture.resize((256, 256), Image.Resampling.NEAREST)


def prepared(pictures: list[Image.Image]) -> Tensor:
    """The network's inputs (N, 3, 32, 32)."""
    return torch.cat([simple_cnn.RECIPE.prepare(picture) for picture in pictures])


def held_out(count: int) -> Tensor:
    """A mask over the data set: True where a picture is kept from training."""
    return torch.arange(count) % 5 == 0


def train(inputs: Tensor, digits: Tensor) -> nn.Module:
    """A network trained on inputs (N, 3, 32, 32) and their digits, in eval mode.

    It computes in float64, where the rounding of another processor is too small to change what comes out in float32.
    """
    with initialization.seeded_initialization():
        network = simple_cnn.SimpleCNN().double()
    order = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(inputs), generator=order), BATCH_SIZE):
            loss = nn.functional.cross_entropy(network(inputs[batch].double()), digits[batch])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    return network.float().eval()


def correct(network: nn.Module, inputs: Tensor, digits: Tensor) -> int:
    """How many of the inputs the network names rightly."""
    with torch.no_grad():
        return int((network(inputs).argmax(1) == digits).sum())


def main() -> None:
    """Train, say how good it became on pictures it has not seen, and store it."""
    pictures, digits = digit_pictures()
    smooth, blocky = prepared(pictures), prepared([enlarged(picture) for picture in pictures])
    unseen = held_out(len(digits))
    network = train(torch.cat([smooth[~unseen], blocky[~unseen]]), digits[~unseen].repeat(2))
    for what, inputs in (("8x8", smooth), ("256x256", blocky)):
        right, count = correct(network, inputs[unseen], digits[unseen]), int(unseen.sum())
        print(f"held out, {what}: {right} of {count} right ({right / count:.2%})")
    WEIGHTS.write_bytes(save(network.state_dict()))


if __name__ == "__main__":
    main()
