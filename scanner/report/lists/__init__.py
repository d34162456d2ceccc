"""Findings and problems as rows: their columns, and the filter and the order of every list."""
