"""Standard output, standard error, and the shell in which a command runs."""
