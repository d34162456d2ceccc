"""Facts about a checked tree that need no evaluation."""
