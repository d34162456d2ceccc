"""Why a request to a receiver failed, in words that have nothing of its URL."""

from __future__ import annotations

import urllib3


def reason_of(error: Exception, seconds: float) -> str:
    """The reason of a failure, without the texts of the error, which can have the URL. `seconds` was the time limit."""
    match error:
        case urllib3.exceptions.NameResolutionError():
            return "the host cannot be found"
        case urllib3.exceptions.NewConnectionError():
            return "the connection was refused"
        case urllib3.exceptions.ConnectTimeoutError() | urllib3.exceptions.ReadTimeoutError():
            return f"no response within {seconds:.3g} seconds"
        case urllib3.exceptions.SSLError():
            return "the certificate cannot be verified"
        case _:
            return f"the connection failed ({type(error).__name__})"
