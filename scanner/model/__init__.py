"""The nouns: frozen, without I/O, and without any knowledge of CEL."""
