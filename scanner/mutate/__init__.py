"""What a mutation would do to an object: structured merge, JSON patch, defaults, and the difference between before and after."""
