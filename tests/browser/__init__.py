"""The pages of a report in a real browser."""
