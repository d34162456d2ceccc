"""From a checked tree to a Python function."""
