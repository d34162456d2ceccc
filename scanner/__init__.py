"""Assay: what a cluster's admission policies say about the objects it already has."""

__version__ = "0.1.0"
