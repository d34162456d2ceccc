"""The answer of a preview as a report: its sentences, and one file for each format."""
