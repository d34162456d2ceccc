"""Assay: audits the objects of a cluster against its admission policies."""

__version__ = "0.1.0"
