"""The nouns: frozen dataclasses without I/O, independent of CEL."""
