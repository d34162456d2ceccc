"""A second opinion: the answers of another CEL engine on a sample of the objects. It decides nothing."""
