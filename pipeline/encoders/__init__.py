"""Image-text encoders: dense picture embeddings that can be compared with words, and what makes channels of them."""
