"""Compiles the queries of a stream, and computes the relevance of each cell to them."""
