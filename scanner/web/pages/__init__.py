"""The pages of the application: a module for each."""
