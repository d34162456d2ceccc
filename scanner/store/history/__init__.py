"""Writes a scan page by page, and merges it into the history of its cluster."""
