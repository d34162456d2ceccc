"""The effect of a mutation on an object: structured merge, JSON patch, defaults, and the difference between before and after."""
