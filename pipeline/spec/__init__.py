"""Constants that engines share, declared once: Python imports them, C and CUDA get headers made from them.

Every annotated name of a module here is a constant: an int, or a float that C and CUDA hold rounded to float32. An
IntEnum becomes an enum. ``headers`` writes the headers; the build of the C kernels and NVRTC take them from it. Nothing
here imports anything but the standard library, so that the build needs no other package.
"""
