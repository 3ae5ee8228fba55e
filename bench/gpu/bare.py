"""Bare decoding by the hardware, and nothing else: ``python -m foveate.bench.gpu.bare FILE...`` prints the frames.

Imports nothing else of the project, so that a process of it is as fast as one that only decodes can be.
"""

import sys


def decode_bare(clip: str) -> int:
    """Decode into device memory, and count the frames."""
    import PyNvVideoCodec as nvc  # noqa: N813

    demuxer = nvc.CreateDemuxer(filename=clip)
    decoder = nvc.CreateDecoder(gpuid=0, codec=demuxer.GetNvCodecId(), usedevicememory=True)
    return sum(len(decoder.Decode(packet)) for packet in demuxer)


if __name__ == "__main__":
    print(sum(map(decode_bare, sys.argv[1:])))
