"""The nouns of a scan: its record, its method, the numbers of its findings and problems, and what a store knows of it."""
