"""The attributes encoder: queries in words for colour, light, motion, text, place and size. It needs no model."""
