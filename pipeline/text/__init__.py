"""Text found by a detector: a model of the extra foveate[ocr]."""
