"""Why an expression came to its value."""
