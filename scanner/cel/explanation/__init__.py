"""The reasons for an expression's value."""
