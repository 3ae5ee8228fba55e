"""The overlay video: tokens, score map and what a model sees, one picture per frame."""
