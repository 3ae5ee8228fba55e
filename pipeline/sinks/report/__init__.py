"""The report: one HTML page with the clip, charts and settings."""
