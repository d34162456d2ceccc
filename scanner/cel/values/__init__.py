"""CEL's values as Python objects, and the operations on them."""
