"""Waivers: which of them apply, to which findings and checks, and why one does not apply."""
