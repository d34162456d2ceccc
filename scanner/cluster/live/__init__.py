"""A live cluster: discovery, lists, schemas, authorizer and rights, read from its API server."""
