"""Mutating policies made by the thousand, and what a real API server and Assay make of objects by them."""
