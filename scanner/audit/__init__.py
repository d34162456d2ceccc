"""The audit of a page of objects: decode them, evaluate every matching policy, and record the results without secrets."""
