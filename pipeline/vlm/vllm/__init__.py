"""A plugin of vLLM: its Qwen models take the chosen patches of a frame, at their true places, beside whole pictures."""
