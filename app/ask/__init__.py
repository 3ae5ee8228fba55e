"""``foveate ask``: a question about a video, answered by a vision-language model."""
