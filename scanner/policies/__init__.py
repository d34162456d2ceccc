"""The interface of a policy language, and one folder for each language."""
