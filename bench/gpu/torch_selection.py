"""One frame's selection as a torch user would write it: whole-picture operations, left to the compiler to fuse."""

from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from foveate.pipeline.cascade.rate_distortion import first_price, prices
from foveate.pipeline.geometry import CELL, ROOT, TILE, TOP_LEVEL, Geometry
from foveate.pipeline.settings import Settings
from foveate.pipeline.spec.errors import CHROMA_WEIGHT
from foveate.pipeline.spec.local_channels import EDGE_CELL, EDGE_REACH, SALIENCY_GAIN

Planes = tuple[Tensor, ...]
State = tuple[Tensor, Tensor, Tensor, Tensor]  # Y, Cb, Cr as held, and luma of level 2 before

_BLACK: Final = 16.0  # limited range
_SPAN: Final = 219.0
_CHROMA_SPAN: Final = 224.0
_PRICES: Final = 176


class TorchSelection:
    """Frames of one size; ``step`` is pure: a frame and a state give a state and tokens."""

    def __init__(self, width: int, height: int, settings: Settings, device: str) -> None:
        self.settings = settings
        self.geometry = geometry = Geometry(width, height)
        rows, columns = geometry.grid
        self._padding = (0, geometry.tiles[1] * TILE - width, 0, geometry.tiles[0] * TILE - height)
        self._roots = -(-rows // ROOT), -(-columns // ROOT)
        self.device = torch.device(device)
        self._inside = torch.from_numpy(geometry.inside).to(self.device).float()
        self._prices = torch.from_numpy(prices()).to(self.device)
        self._first = first_price(settings.allocation.min_gain)
        self._eccentricity = self._distances().to(self.device)
        self._order = torch.from_numpy(self._reading_order()).to(self.device)

    def start(self, frame: Tensor) -> State:
        """The state after a first frame."""
        luma, cb, cr = self._planes(frame)
        return luma, cb, cr, F.avg_pool2d(luma[None, None], 4)[0, 0]

    def step(self, frame: Tensor, state: State) -> tuple[State, Tensor]:
        """Held planes and tokens, int64[budget]: numbers for ``named``, ascending; unused ones are the last number."""
        planes = self._planes(frame)
        held = state[:3]
        changed = self._changed(planes, held)
        now = tuple(
            torch.where(_enlarge(changed, TILE >> base) > 0, plane, old)
            for plane, old, base in zip(planes, held, (0, 1, 1), strict=True)
        )
        levels = [_levels(plane, base) for plane, base in zip(now, (0, 1, 1), strict=True)]
        errors = self._errors(levels)
        score = self._scores(levels, state[3], changed)
        weight = (self.settings.score.floor + score) * self._inside
        tokens = self._allocate([error * weight for error in errors])
        return (now[0], now[1], now[2], levels[0][2]), tokens

    def named(self, tokens: NDArray[np.int64]) -> set[tuple[int, int, int]]:
        """LOD and centre in pixels of each token."""
        found = set()
        for number in tokens.tolist():
            if number >= len(self._places[0]):
                continue
            lod, row, column = (int(values[number]) for values in self._places)
            side = CELL << lod
            found.add((lod, column * side + side // 2, row * side + side // 2))
        return found

    def _planes(self, frame: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Padded to tiles by repeating the edge, float32 in 8-bit units."""
        height, width = self.geometry.height, self.geometry.width
        luma = frame[:height].float()
        chroma = frame[height:].reshape(height // 2, width // 2, 2).float()
        left, right, top, bottom = self._padding
        half = (left, right // 2, top, bottom // 2)
        cb, cr = (F.pad(chroma[None, ..., index], half, mode="replicate")[0] for index in range(2))
        return F.pad(luma[None], self._padding, mode="replicate")[0], cb, cr

    def _changed(self, planes: Planes, held: Planes) -> Tensor:
        """float32[tiles]: 1 where any block of any plane differs by more than the threshold."""
        worst: Any = None
        for plane, old, side in zip(planes, held, (8, 4, 4), strict=True):
            blocks = F.max_pool2d(F.avg_pool2d((plane - old).abs()[None, None], side), 4)[0, 0]
            worst = blocks if worst is None else torch.maximum(worst, blocks)
        return (worst > self.settings.change.threshold).float()

    def _errors(self, levels: list[dict[int, Tensor]]) -> list[Tensor]:
        """Squared error of each cell shown at levels 1 to 4 and enlarged bilinearly; see native/leaf_errors.c."""
        errors, total = [], torch.zeros(self.geometry.grid, device=self.device)
        for level in range(1, TOP_LEVEL + 1):
            for plane, base in zip(levels, (0, 1, 1), strict=True):
                if level > base:
                    gap = plane[level - 1] - _bilinear(plane[level], 2)
                    squares = _pooled(gap * gap, CELL >> (level - 1)) * (CELL * CELL)
                    total = total + (CHROMA_WEIGHT if base else 1.0) * squares
            errors.append(total)
        return errors

    def _scores(self, levels: list[dict[int, Tensor]], before: Tensor, changed: Tensor) -> Tensor:
        luma = levels[0]
        light = (luma[2] - _BLACK).clamp(0, _SPAN)
        edges = _edges(light.sqrt())
        inverted = _edges((_SPAN - light).sqrt())
        low = _bilinear((luma[3] - _BLACK).clamp(0, _SPAN), 2)
        highpass = _greatest((light - low).abs(), 4) / _SPAN
        moving = _enlarge(changed, 2)
        motion = (_greatest((luma[2] - before).abs(), 4) / _SPAN).clamp(max=1) * moving
        saliency = self._saliency(levels)
        distance = _edge_distance(torch.maximum(edges, inverted) > EDGE_CELL)
        information = 0.4 * torch.maximum(edges, inverted) + 0.3 * highpass + 0.3 * (1 - distance)
        perspective = (0.6 * saliency + 0.4 * motion) * (1 - 0.5 * self._eccentricity)
        wanted = ((distance < 1) | (moving > 0)).float()
        return 0.5 * (information + perspective) * wanted

    def _saliency(self, levels: list[dict[int, Tensor]]) -> Tensor:
        def opponents(level: int) -> tuple[Tensor, Tensor, Tensor]:
            luma, cb, cr = (plane[level] for plane in levels)
            return luma, 1.058 * cr + 0.172 * cb, 0.972 * cb - 0.172 * cr

        fine, coarse = opponents(2), opponents(4)
        light, red_green, blue_yellow = (
            (near - _bilinear(far, 4)).abs() for near, far in zip(fine, coarse, strict=True)
        )
        contrast = light * (SALIENCY_GAIN / _SPAN / 3) + (red_green + blue_yellow) * (SALIENCY_GAIN / _CHROMA_SPAN / 3)
        return _pooled(contrast.clamp(max=1), 4)

    def _allocate(self, weighted: list[Tensor]) -> Tensor:
        """The lowest price whose tree fits, in two rounds; then the tree's tokens in reading order."""
        leaves = [self._nodes(error, level) for level, error in enumerate(weighted, start=1)]
        units = [self._nodes(self._inside, level) for level in range(TOP_LEVEL + 1)]
        last = len(self._prices) - 1
        step = -(-(last - self._first) // (_PRICES - 1))
        tried = torch.arange(_PRICES, device=self.device)
        low = torch.full((1,), self._first, device=self.device)
        for stride in (step, 1):
            index = (low + tried * stride).clamp(max=last)
            over = (_prune(leaves, units, self._prices[index])[0] > self.settings.budget).sum()
            chosen = index[over.clamp(max=_PRICES - 1).reshape(1)]
            low = torch.where(over > 0, index[(over - 1).clamp(min=0).reshape(1)] + 1, low)
        _, better = _prune(leaves, units, self._prices[chosen])
        flags, active = [], torch.ones_like(units[TOP_LEVEL], dtype=torch.bool)
        for level in range(TOP_LEVEL, 0, -1):
            leaf = active & better[level - 1][0]
            flags.append(leaf)
            active = _enlarge(active & ~leaf, 2)
        flags.append(active & (units[0] > 0))
        flat = torch.cat([flag.reshape(-1) for flag in flags])
        rank = torch.where(flat, flat.long().cumsum(0) - 1, self.settings.budget)
        tokens = torch.full((self.settings.budget + 1,), len(flat), dtype=torch.int64, device=self.device)
        return tokens.scatter(0, rank, self._order)[:-1]

    def _nodes(self, grid: Tensor, level: int) -> Tensor:
        """Sums over the nodes of a level, the grid padded to whole roots."""
        rows, columns = self._roots
        padded = F.pad(grid, (0, columns * ROOT - grid.shape[1], 0, rows * ROOT - grid.shape[0]))
        return _pooled(padded, 1 << level) * 4**level

    def _distances(self) -> Tensor:
        rows, columns = self.geometry.grid
        width, height = self.geometry.width, self.geometry.height
        y, x = (np.indices((rows, columns), np.float32) + 0.5) * CELL
        away = np.hypot(x - width / 2, y - height / 2) / (np.hypot(width, height) / 2)
        return torch.from_numpy(np.minimum(away, 1).astype(np.float32))

    def _reading_order(self) -> NDArray[np.int64]:
        """Numbers of the nodes of all levels, and what each stands for."""
        lods, rows, columns = [], [], []
        for level in range(TOP_LEVEL, -1, -1):
            row, column = np.indices([roots << (TOP_LEVEL - level) for roots in self._roots])
            lods.append(np.full(row.size, level))
            rows.append(row.ravel())
            columns.append(column.ravel())
        self._places = [np.concatenate(part) for part in (lods, rows, columns)]
        return np.arange(len(self._places[0]), dtype=np.int64)


def _pooled(values: Tensor, side: int) -> Tensor:
    return values if side == 1 else F.avg_pool2d(values[None, None], side)[0, 0]


def _greatest(values: Tensor, side: int) -> Tensor:
    return F.max_pool2d(values[None, None], side)[0, 0]


def _enlarge(values: Tensor, factor: int) -> Tensor:
    """Each value over factor x factor places."""
    return values.repeat_interleave(factor, 0).repeat_interleave(factor, 1)


def _bilinear(values: Tensor, factor: int) -> Tensor:
    return F.interpolate(values[None, None], scale_factor=factor, mode="bilinear", align_corners=False)[0, 0]


def _levels(plane: Tensor, base: int) -> dict[int, Tensor]:
    """The plane at levels ``base`` to 4."""
    levels = {base: plane}
    for level in range(base + 1, TOP_LEVEL + 1):
        levels[level] = _pooled(levels[level - 1], 2)
    return levels


def _edges(root: Tensor) -> Tensor:
    """Greatest gradient of each cell, by 3x3 Sobel / 4, for a root of luma at level 2."""
    p = F.pad(root[None], (1, 1, 1, 1), mode="replicate")[0]
    across = (p[:-2, 2:] - p[:-2, :-2]) + 2 * (p[1:-1, 2:] - p[1:-1, :-2]) + (p[2:, 2:] - p[2:, :-2])
    down = (p[2:, :-2] - p[:-2, :-2]) + 2 * (p[2:, 1:-1] - p[:-2, 1:-1]) + (p[2:, 2:] - p[:-2, 2:])
    square = (across * across + down * down) / 16
    return (_greatest(square, 4) / _SPAN).sqrt().clamp(max=1)


def _edge_distance(edge: Tensor) -> Tensor:
    """Distance to the nearest edge cell, / 8, clipped to 1: along rows first, then along columns."""
    far = float(2 * EDGE_REACH * EDGE_REACH)
    square = torch.where(edge, 0.0, far)
    for axis in (1, 0):
        size = square.shape[axis]
        pads = (EDGE_REACH, EDGE_REACH, 0, 0) if axis == 1 else (0, 0, EDGE_REACH, EDGE_REACH)
        padded = F.pad(square, pads, value=far)
        shifted = [padded.narrow(axis, k, size) + float((k - EDGE_REACH) ** 2) for k in range(2 * EDGE_REACH + 1)]
        square = torch.stack(shifted).amin(0)
    return (square.sqrt() / EDGE_REACH).clamp(max=1)


def _prune(leaves: list[Tensor], units: list[Tensor], tried: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Tokens of the best tree for each price [P], and [level - 1][P, nodes]: better shown as one token than split."""
    price = tried[:, None, None]
    cost, tokens = price * units[1], units[1].expand(len(tried), -1, -1)
    better = []
    for level in range(1, TOP_LEVEL + 1):
        if level > 1:
            cost, tokens = _over_children(cost), _over_children(tokens)
        leaf = leaves[level - 1] + price
        wins = (leaf < cost) | ((leaf == cost) & (tokens > 1))
        cost, tokens = torch.where(wins, leaf, cost), torch.where(wins, 1.0, tokens)
        better.append(wins)
    return tokens.sum((1, 2)), better


def _over_children(values: Tensor) -> Tensor:
    count, rows, columns = values.shape
    return values.reshape(count, rows // 2, 2, columns // 2, 2).sum((2, 4))
