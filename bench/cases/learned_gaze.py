"""An experiment: a tiny network learns where to look, by nothing but the error of what a reader sees. Needs torch:

python -m foveate.bench.cases.learned_gaze --out learned_gaze.json

In generated pictures one textured square lies somewhere on smooth ground. The reader gets the whole picture as one
token of LOD 3, and four more tokens: a square of 32 samples around a gaze (x, y) at a LOD between 0 and 1. Gaze and LOD
are the network's; its gradient comes through the differentiable samples and the reader's picture, for nobody tells it
where the square is. It is measured in pictures that it was not trained on.
"""

from collections.abc import Mapping
from statistics import fmean
from typing import Annotated, Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.entry import Out, check_least, needed, run_module
from foveate.bench.reader.painting import ReaderPicture, decibels, lods_of, mean_square
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.pipeline.stream import open_stream

with needed(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812 # the usual name
    from torch import Tensor, nn

    from foveate.pipeline.learned import picture_levels, sample_patches

SIDE: Final = 128  # pixels of a picture, one token of LOD 3
_LOD: Final = 3  # of that token
_SAMPLES: Final = 32  # across the gaze: 2 x 2 tokens
TOKENS: Final = 5
_BATCH: Final = 16
_SEED, _HELD_SEED = 1, 2

Places = tuple[Tensor, Tensor, Tensor]  # x, y, LOD, [B] each


def learned_gaze(
    out: Out = None,
    steps: Annotated[int, arg(metavar="N", help="Steps of training.")] = 600,
    pictures: Annotated[int, arg(metavar="N", help="Pictures held out.")] = 64,
) -> None:
    """Train the network, and compare its gaze with others in pictures held out."""
    check_least(1, steps=steps, pictures=pictures)
    record = new_record("learned_gaze", out, torch=str(torch.__version__), steps=steps, tokens=TOKENS)
    torch.manual_seed(_SEED)
    network = trained(steps)
    held, true = scene(np.random.default_rng(_HELD_SEED), pictures)
    record |= {"pictures": pictures, "cases": cases(network, held, true)}
    for case in record["cases"]:
        say(f"{case['name']}: {case['psnr_luma']:.2f} dB")
    hand_out(record, out)


def scene(generator: np.random.Generator, count: int) -> tuple[Tensor, Places]:
    """Pictures float32[count, 1, SIDE, SIDE] in [0, 1], whole 8-bit levels, and where their squares are."""
    drawn = [_drawn(generator) for _ in range(count)]
    places = torch.tensor([place for _, place in drawn], dtype=torch.float32)
    luma = torch.from_numpy(np.stack([picture for picture, _ in drawn]))[:, None].float() / 255
    x, y, side = places.unbind(1)
    return luma, (x, y, torch.log2(side / _SAMPLES).clamp(0, 1))


def _drawn(generator: np.random.Generator) -> tuple[NDArray[np.uint8], tuple[float, float, int]]:
    """Smooth ground, and a square of 24 to 48 pixels of grains of 3, of the ground's mean; its centre and side."""
    coarse = generator.uniform(90, 150, (5, 5)).astype(np.float32)
    picture = np.asarray(cv2.resize(coarse, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC), np.float32)
    side = int(generator.integers(24, 49))
    left, top = generator.integers(0, SIDE - side + 1, 2).tolist()
    grains = generator.uniform(-90, 90, (side // 3 + 1, side // 3 + 1)).astype(np.float32)
    picture[top : top + side, left : left + side] += grains.repeat(3, 0).repeat(3, 1)[:side, :side]
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8), (left + side / 2, top + side / 2, side)


class Gaze(nn.Module):  # type: ignore[misc] # torch is not looked into
    """From mean and detail of squares of 8 pixels to x, y and LOD. About 900 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
        )
        self.heat, self.lod = nn.Conv2d(8, 1, 1), nn.Linear(8, 1)

    def forward(self, pictures: Tensor) -> Places:
        """Places in ``pictures`` [B, 1, SIDE, SIDE]; the gaze is the mean of the squares' centres, by their heat."""
        block = 1 << _LOD
        mean = F.avg_pool2d(pictures, block)
        detail = (F.avg_pool2d(pictures**2, block) - mean**2).clamp(min=1e-6).sqrt()
        found = self.features(torch.cat([mean - 0.5, 8 * detail], dim=1))
        share = self.heat(found).flatten(1).softmax(1)
        centres = (torch.arange(SIDE // block) + 0.5) * block
        x = (share * centres.repeat(SIDE // block)).sum(1)
        y = (share * centres.repeat_interleave(SIDE // block)).sum(1)
        return x, y, self.lod((found.flatten(2) * share[:, None]).sum(2)).sigmoid()[:, 0]


def trained(steps: int) -> Gaze:
    """A network after so many steps of Adam (Kingma and Ba 2015) on the reader's squared error."""
    network, generator = Gaze(), np.random.default_rng(_SEED)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(steps):
        pictures, _places = scene(generator, _BATCH)
        levels = picture_levels(pictures)
        loss = (seen(levels, network(pictures)) - pictures).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network


def seen(levels: list[Tensor], places: Places) -> Tensor:
    """The reader's pictures, [B, 1, SIDE, SIDE]: the token of LOD 3 enlarged, the tokens of the gaze over it.

    The rim of the gaze is as wide as a sample, over which it fades, so that moving it has a gradient.
    """
    ground = F.interpolate(levels[_LOD], scale_factor=1 << _LOD, mode="bilinear", align_corners=False)
    x, y, lod = (place[:, None] for place in places)
    patches = sample_patches(levels, x, y, lod, _SAMPLES)[:, 0]
    pixels = torch.arange(SIDE) + 0.5
    across, down = (pixels - x) / torch.exp2(lod), (pixels - y) / torch.exp2(lod)  # samples from the gaze
    places_in = torch.stack(torch.broadcast_tensors(across[:, None, :], down[:, :, None]), dim=-1) * (2 / _SAMPLES)
    detail = F.grid_sample(patches, places_in, mode="bilinear", padding_mode="border", align_corners=False)
    inside_x, inside_y = ((_SAMPLES / 2 + 0.5 - each.abs()).clamp(0, 1) for each in (across, down))
    return ground + (inside_y[:, None, :, None] * inside_x[:, None, None, :]) * (detail - ground)


def cases(network: Gaze, pictures: Tensor, true: Places) -> list[dict[str, Any]]:
    """Mean PSNR of each way to look, over ``pictures``, and that of the default strategy with as many tokens."""
    generator = torch.Generator().manual_seed(_HELD_SEED)
    anywhere = SIDE * torch.rand(2, len(pictures), generator=generator)
    with torch.no_grad():
        learned = network(pictures)
        middle = torch.full_like(true[0], SIDE / 2)
        ways: Mapping[str, Places] = {
            "learned": learned,
            "random": (anywhere[0], anywhere[1], learned[2]),
            "centre": (middle, middle, learned[2]),
            "true place": true,
        }
        levels = picture_levels(pictures)
        errors = {name: (seen(levels, places) - pictures).square().mean((1, 2, 3)) for name, places in ways.items()}
    samples = {name: [decibels(255**2 * error) for error in each.tolist()] for name, each in errors.items()}
    samples["default"] = by_default(pictures)
    off = torch.hypot(learned[0] - true[0], learned[1] - true[1])
    found = [{"name": name, "psnr_luma": fmean(each), "samples": {"psnr_luma": each}} for name, each in samples.items()]
    found[0]["median_distance"] = float(off.median())  # pixels from the square's centre
    return found


def by_default(pictures: Tensor) -> list[float]:
    """PSNR of each picture with the tokens that Foveate chooses by default."""
    lumas = [np.rint(255 * picture).astype(np.uint8) for picture in pictures[:, 0].numpy()]
    found = []
    with open_stream(lumas, fps=1, budget=TOKENS, change={"keyframe_interval": 1}) as stream:
        for luma, selection in zip(lumas, stream, strict=True):
            reader = ReaderPicture([luma.shape])
            reader.paint([luma], lods_of(selection))
            found.append(decibels(mean_square(reader.planes[0], luma)))
    return found


if __name__ == "__main__":
    run_module(learned_gaze)
