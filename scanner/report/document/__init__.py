"""The facts of a report: every format renders `document.Document`, and adds no facts of its own."""
