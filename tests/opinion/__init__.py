"""Second opinions."""
