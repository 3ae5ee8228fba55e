"""Text detection with a model of the extra ocr."""
