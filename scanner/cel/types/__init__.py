"""CEL's types, and their assignability."""
