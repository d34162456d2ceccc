"""What must be fast, measured against something else in the same run; nothing here is a test."""
