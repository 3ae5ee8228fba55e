"""What is looked for: queries, the encoders that understand them, and the relevance of each cell to them."""
