"""CEL's values as Python objects, and what operators do with them."""
