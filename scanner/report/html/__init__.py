"""The report as HTML: pages, their rows and templates, in a folder or as one file."""
