"""What findings mean for the people who own the objects: pure functions over nouns."""
