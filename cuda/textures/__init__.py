"""Mipmapped textures on an NVIDIA GPU, without the pipeline: pictures that are updated in part, and read at any scale.

``Texture`` holds one or more pictures; ``VideoTexture`` brings one of them up to date frame by frame. Both take and
hand out arrays of other libraries, such as PyTorch, through DLPack. ``Device`` is the GPU; its streams order the work.
"""

from foveate.cuda.driver.device import Device
from foveate.cuda.driver.tensors import DeviceTensor
from foveate.cuda.textures.boxes import Box
from foveate.cuda.textures.texture import Texture
from foveate.cuda.textures.video import VideoTexture

__all__ = ["Box", "Device", "DeviceTensor", "Texture", "VideoTexture"]
