"""The difference of two scans: its words, and a module for each format."""
