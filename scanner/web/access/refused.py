"""Reasons for which a request is not authenticated."""

from __future__ import annotations

from typing import Final

_CODES: Final = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"),
        *("unsupported_response_type", "invalid_scope", "access_denied", "server_error", "temporarily_unavailable"),
        *("interaction_required", "login_required", "account_selection_required", "consent_required"),
        *(
            "invalid_token",
            "insufficient_scope",
            "request_not_supported",
            "invalid_request_uri",
            "invalid_request_object",
        ),
    }
)
"""The errors of RFC 6749, RFC 6750 and OpenID Connect Core 1.0."""


def describe_code(code: str) -> str:
    """The error code of a provider for the log. Another text than a known code may repeat the secret of the client."""
    return code if code in _CODES else "an unknown error"


class Refused(Exception):
    """Credentials that are not accepted. The message is for the log: the client learns that they are refused, but not why."""


class NotAllowed(Exception):
    """A user whom the provider authenticates, but who is in none of the groups. `user` is the name of the user."""

    def __init__(self, user: str) -> None:
        super().__init__(f"{user} is in none of the groups that may read")
        self.user = user


class ProviderUnavailable(Exception):
    """The provider, or the address of the proxy's keys, does not answer as it must. The message is for the log."""
