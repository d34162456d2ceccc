"""What a policy language is, and one folder for each."""
