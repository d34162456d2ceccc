"""A second opinion: the results of another CEL engine on a sample of the objects. They change no verdict."""
