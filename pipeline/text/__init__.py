"""Text found by a detector: a model of the extra ocr."""
