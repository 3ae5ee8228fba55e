"""The maps that the card warps from the previous frame to this one along the flow."""

from enum import IntEnum


class WarpedMap(IntEnum):
    """Their order. Warping averages those before CLUSTER_ID; the others hold identities and counts."""

    PREV_RELEVANCE = 0
    PREV_SALIENCY = 1
    FIXATION = 2
    ATTENTION = 3
    CLUSTER_DISTANCE = 4
    CLUSTER_ID = 5
    CLUSTER_SIZE = 6
    SINCE = 7
