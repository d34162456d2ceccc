"""The translation of text to a tree, and the errors of invalid text."""
