"""Charts as data: what is drawn where, and the same numbers as a table. Templates write them as SVG (ADR 86)."""
