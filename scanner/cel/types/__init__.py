"""CEL's types, and which type fits where."""
