"""The tables, and the forms of their rows: ids, shared rows, digests, sums, and the index of a search."""
