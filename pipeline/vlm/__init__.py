"""The hand-off to vision-language models: where selected tokens lie, as a model's own position embedding reads it."""
