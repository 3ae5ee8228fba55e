"""Recordings for the Rerun viewer (.rrd): the video, tokens as boxes, the score, figures over time."""
