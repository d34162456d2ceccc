"""The time at which the credentials in a kubeconfig expire: its client certificate (RFC 5280), and its token if it is a JWT (RFC 7519).

Credentials that a program or a file gives are renewed without a change of the kubeconfig, and so are those that are valid for some
days alone: their time is no fact that a user must know.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson

from scanner.der import only
from scanner.files import SETTINGS, read_text
from scanner.model.json import JsonObject, as_text, dig

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_PARTS_OF_TOKEN: Final = 3
_SHORT: Final = 15 * 86400
"""Credentials that are valid for less time are renewed by a program."""
_VALIDITY: Final = 3
"""The place of the validity in a certificate, behind serial number, algorithm and issuer."""


def find_expiry(user: JsonObject) -> int | None:
    """The Unix time at which the first of the credentials of a user expires, as far as the entry itself has them; None if none is known.

    Paths of files are absolute.
    """
    validities = (*_read_token_validity(user), *_read_certificate_validity(user))
    ends = [end for begin, end in validities if end - begin >= _SHORT]
    return math.floor(min(ends)) if ends else None


def _read_token_validity(user: JsonObject) -> Iterator[tuple[float, float]]:
    """The first and the last moment of a token, if it has an end."""
    claims = _read_claims(as_text(user.get("token")))
    end = _read_time(claims, "exp")
    if end is not None:
        yield _read_time(claims, "iat") or 0, end


def read_token_expiry(token: str) -> float | None:
    """The time at which a JSON Web Token expires, in seconds since 1970, infinite without one; None for another text."""
    claims = _read_claims(token)
    if claims is None:
        return None
    end = _read_time(claims, "exp")
    return math.inf if end is None else end


def _read_claims(token: str) -> JsonObject | None:
    """The claims of a JSON Web Token, None for another text."""
    parts = token.split(".")
    try:
        # The base64 of a token has no padding.
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = orjson.loads(base64.urlsafe_b64decode(padded))
    except (IndexError, binascii.Error, ValueError):
        return None
    return claims if isinstance(claims, dict) and len(parts) == _PARTS_OF_TOKEN else None


def _read_time(claims: JsonObject | None, name: str) -> float | None:
    time = dig(claims, name)
    return float(time) if isinstance(time, int | float) else None


def _read_certificate_validity(user: JsonObject) -> Iterator[tuple[float, float]]:
    """The validity of the first certificate, which is that of the user; others are those of authorities. None of a malformed one."""
    with suppress(OSError, ValueError, IndexError, RecursionError):
        if data := as_text(user.get("client-certificate-data")):
            text = base64.b64decode(data).decode()
        elif path := as_text(user.get("client-certificate")):
            text = read_text(Path(path), SETTINGS)
        else:
            return
        if block := _CERTIFICATE.search(text):
            yield _read_validity(base64.b64decode("".join(block[1].split())))


def _read_validity(certificate: bytes) -> tuple[float, float]:
    body = only(certificate).children()[0]
    parts = [part for part in body.children() if not part.context(0)]
    begin, end = (datetime.fromisoformat(time.moment()).timestamp() for time in parts[_VALIDITY].children())
    return begin, end
