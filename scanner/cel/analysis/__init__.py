"""What a checked tree tells before it is evaluated."""
