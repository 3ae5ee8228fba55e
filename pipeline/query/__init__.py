"""Queries: the interface of their encoders, their linear terms, and example pictures."""
