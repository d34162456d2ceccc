"""Measurements of what must be fast, each against an anchor in the same run; nothing here is a test."""
