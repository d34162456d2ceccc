"""The cost of an evaluation in CEL's unit: counted, and estimated."""
