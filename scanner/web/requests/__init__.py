"""What a request may ask, its limits, and the answer to a request that is refused."""
