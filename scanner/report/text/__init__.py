"""Words and characters of reports: texts that are safe on a terminal, in JSON and in Markdown."""
