"""What an evaluation costs in CEL's unit: counted, and foreseen."""
