"""Image-text encoders: dense embeddings of a picture that can be compared with words, kept as channels."""
