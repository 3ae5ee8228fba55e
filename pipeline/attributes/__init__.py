"""The attributes encoder: plain words for what pixels and motion tell by themselves. It needs no model."""
