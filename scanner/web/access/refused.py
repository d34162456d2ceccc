"""Reasons for which a request is not authenticated."""

from __future__ import annotations


class Refused(Exception):
    """Credentials that are not accepted. The message is for the log: the client learns that they are refused, but not why."""


class NotAllowed(Exception):
    """A user whom the provider authenticates, but who is in none of the groups. `user` is the name of the user."""

    def __init__(self, user: str) -> None:
        super().__init__(f"{user} is in none of the groups that may read")
        self.user = user


class ProviderUnavailable(Exception):
    """The provider, or the address of the proxy's keys, does not answer as it must. The message is for the log."""
