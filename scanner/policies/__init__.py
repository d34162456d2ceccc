"""One file per policy language."""
