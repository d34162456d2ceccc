"""The meaning of findings for the owners of the objects: pure functions over nouns."""
