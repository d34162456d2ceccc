"""Requests: address and credentials, connections, one exchange with its deadline, limits of rate and time."""
