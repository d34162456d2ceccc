"""Signed statements about users, as JSON Web Tokens (RFC 7519): ID tokens of a provider, and assertions of a proxy.

Only signatures by asymmetric keys count, only by the configured keys, and only for the configured issuer and audience (RFC 8725).
A header without a signature is never accepted: what strips it on its way is easily left out (CVE-2025-64484, CVE-2026-40575).
"""

from __future__ import annotations

from typing import Final

from joserfc import jwt
from joserfc.errors import ClaimError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry

from scanner.model.json import Json, JsonObject
from scanner.web.access.keys import Keys
from scanner.web.access.refused import Refused

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "Ed448"),
)
_REGISTRY: Final = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
_LEEWAY: Final = 60
"""Seconds that the clocks may differ."""
_LONGEST_NAME: Final = 200
_UNREADABLE: Final = (JoseError, ValueError, RecursionError)
"""The errors of a token that is not valid: a header or claims nested without end are a RecursionError."""
_NAMES: Final = ("email", "preferred_username", "sub")


async def verify(text: str, keys: Keys, *, issuer: str, audience: str, nonce: str | None = None) -> JsonObject:
    """The claims of a token that is valid now. Raises Refused, and ProviderUnavailable without keys.

    With a `nonce`, the token is an ID token that must have it.
    """
    known = await keys.current()
    try:
        claims = _decode(text, known)
    except InvalidKeyIdError as error:
        newer = await keys.newer(known)
        if newer is None:
            raise Refused("the token is signed by an unknown key") from error
        claims = _decode_or_refuse(text, newer)
    except _UNREADABLE as error:
        raise _make_refusal(error) from error
    _check(claims, issuer, audience, nonce)
    return claims


def _decode_or_refuse(text: str, keys: KeySet) -> JsonObject:
    try:
        return _decode(text, keys)
    except _UNREADABLE as error:
        raise _make_refusal(error) from error


def _decode(text: str, keys: KeySet) -> JsonObject:
    claims: JsonObject = jwt.decode(text, keys, registry=_REGISTRY).claims
    return claims


def _check(claims: JsonObject, issuer: str, audience: str, nonce: str | None) -> None:
    required = {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": audience}}
    registry = JWTClaimsRegistry(leeway=_LEEWAY, exp={"essential": True}, sub={"essential": True}, **required)  # type: ignore[arg-type]
    try:
        registry.validate(dict(claims))
    except JoseError as error:
        raise _make_refusal(error) from error
    if nonce is not None:
        _check_id_token(claims, audience, nonce)


def _check_id_token(claims: JsonObject, audience: str, nonce: str) -> None:
    """The rules of OpenID Connect Core 1.0, 3.1.3.7, besides those of every token."""
    if claims.get("nonce") != nonce:
        raise Refused("the ID token has another nonce")
    audiences = claims["aud"]
    if claims.get("azp", audience) != audience or (
        isinstance(audiences, list) and len(audiences) > 1 and "azp" not in claims
    ):
        raise Refused("the ID token is for another client")


def _make_refusal(error: Exception) -> Refused:
    """The reason of the library, by its code: its other words may quote the token."""
    match error:
        case ClaimError():
            what = f"{error.claim}: {error.description}"
        case JoseError():
            what = error.error
        case _:
            what = type(error).__name__
    return Refused(f"the token is not valid: {what}")


def name_of(claims: JsonObject) -> str:
    """The name of a user for people; `sub` is the one that never changes."""
    return next((text for claim in _NAMES if (text := _text(claims.get(claim)))), "")


def subject_of(claims: JsonObject) -> str:
    """The identifier of a user at the issuer."""
    return _text(claims.get("sub"))


def _text(value: Json) -> str:
    """A text of a claim, shortened, without halves of characters, which JSON can have."""
    return value[:_LONGEST_NAME].encode(errors="replace").decode() if isinstance(value, str) else ""
