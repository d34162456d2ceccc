"""Environments, and the types of every node of a tree."""
