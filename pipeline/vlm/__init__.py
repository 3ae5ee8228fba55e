"""Feeds selected tokens to vision-language models, at the positions that each model's position embedding expects."""
