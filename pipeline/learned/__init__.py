"""Parts for training, which need torch: patches as differentiable functions of where they are sampled.

The soft form of the budget is in ``pipeline.cascade.soft_torch``.
"""

from foveate.pipeline.learned.sampling import frame_patches as frame_patches
from foveate.pipeline.learned.sampling import picture_levels as picture_levels
from foveate.pipeline.learned.sampling import sample_patches as sample_patches

__all__ = ["frame_patches", "picture_levels", "sample_patches"]
