"""Sign-in with a provider of OpenID Connect: the authorization code flow with PKCE, state and nonce.

https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth, RFC 7636, RFC 9207, RFC 9700. The provider is found by its issuer
(OpenID Connect Discovery 1.0), when the first user signs in.
"""

from __future__ import annotations

from dataclasses import dataclass
from secrets import compare_digest, token_urlsafe
from typing import Final
from urllib.parse import urlsplit

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

from scanner.audit.own_secrets import OwnSecrets
from scanner.model.json import Json, JsonObject
from scanner.model.urls import origin_of, remove_password
from scanner.web.access.assertions import name_of, subject_of, verify
from scanner.web.access.exchange import TIMEOUT, LimitedTransport, Shared, document_at
from scanner.web.access.keys import Keys
from scanner.web.access.refused import NotAllowed, ProviderUnavailable, Refused, describe_code
from scanner.web.access.sessions import Pending
from scanner.web.access.settings import EVERYONE, OidcSettings

_DISCOVERY: Final = "/.well-known/openid-configuration"
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of a provider by its discovery document. `userinfo` is empty if it has none, `posts_secret` whether it wants the secret in the body."""

    authorization: str
    token: str
    keys: str
    userinfo: str
    posts_secret: bool


class Provider:
    """The provider of the settings; `redirect_uri` is the address to which it sends users back."""

    def __init__(self, settings: OidcSettings, redirect_uri: str) -> None:
        self._settings = settings
        self._redirect_uri = redirect_uri
        self._secrets = OwnSecrets(settings.client_secret)
        self._discovery = Shared(self._discover)
        self._endpoints: Endpoints | None = None
        self._keys: Keys | None = None

    async def begin(self, target: str) -> tuple[str, Pending]:
        """The address at which a user signs in, and what the answer must fit. Raises ProviderUnavailable."""
        endpoints = await self._get_endpoints()
        pending = Pending(token_urlsafe(32), token_urlsafe(32), token_urlsafe(48), target)
        async with self._client(endpoints) as client:
            url, _ = client.create_authorization_url(
                endpoints.authorization, state=pending.state, nonce=pending.nonce, code_verifier=pending.verifier
            )
        return str(url), pending

    async def finish(self, code: str, issuer: str, pending: Pending) -> tuple[str, str]:
        """The name and the subject of the user whom the provider sends back with a code.

        `issuer` is the one that the answer names, or empty. Raises Refused, NotAllowed, and ProviderUnavailable.
        """
        if issuer and issuer != self._settings.issuer:
            raise Refused("the answer comes from another provider")
        endpoints = await self._get_endpoints()
        answer = await self._exchange_code(endpoints, code, pending)
        claims = await self._claims(answer, pending)
        if not await self._is_member(endpoints, answer, claims):
            raise NotAllowed(self._secrets.mask(name_of(claims)))
        return self._secrets.mask(name_of(claims)), self._secrets.mask(subject_of(claims))

    async def _exchange_code(self, endpoints: Endpoints, code: str, pending: Pending) -> JsonObject:
        try:
            async with self._client(endpoints) as client:
                answer: JsonObject = await client.fetch_token(
                    endpoints.token,
                    grant_type="authorization_code",
                    code=code,
                    redirect_uri=self._redirect_uri,
                    code_verifier=pending.verifier,
                )
        except OAuthError as error:
            raise Refused(f"the provider refuses the code: {describe_code(str(error.error))}") from error
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise ProviderUnavailable(
                f"{origin_of(endpoints.token)} does not answer as it must: {type(error).__name__}"
            ) from error
        return answer

    async def _claims(self, answer: JsonObject, pending: Pending) -> JsonObject:
        token = answer.get("id_token")
        if not isinstance(token, str) or self._keys is None:
            raise Refused("the provider has sent no ID token")
        return await verify(
            token, self._keys, issuer=self._settings.issuer, audience=self._settings.client_id, nonce=pending.nonce
        )

    async def _is_member(self, endpoints: Endpoints, answer: JsonObject, claims: JsonObject) -> bool:
        """Return whether a user is in one of the groups. Some providers list groups in the user info alone."""
        if EVERYONE in self._settings.groups:
            return True
        claim, token = self._settings.groups_claim, answer.get("access_token")
        listed = claims.get(claim)
        if listed is None and endpoints.userinfo and isinstance(token, str):
            info = await document_at(endpoints.userinfo, token=token)
            if not isinstance(info, dict) or not compare_digest(subject_of(info).encode(), subject_of(claims).encode()):
                raise Refused("the user info is about another user")
            listed = info.get(claim)
        return bool(set(self._settings.groups).intersection(_texts(listed)))

    def _client(self, endpoints: Endpoints) -> AsyncOAuth2Client:
        settings = self._settings
        with_secret = "client_secret_post" if endpoints.posts_secret else "client_secret_basic"
        return AsyncOAuth2Client(
            settings.client_id,
            settings.client_secret or None,
            scope=" ".join(settings.scopes),
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
            token_endpoint_auth_method=with_secret if settings.client_secret else "none",
            timeout=TIMEOUT,
            follow_redirects=False,
            transport=LimitedTransport(),
        )

    async def _get_endpoints(self) -> Endpoints:
        return self._endpoints or await self._discovery.answer()

    async def _discover(self) -> Endpoints:
        document = await document_at(self._settings.issuer.rstrip("/") + _DISCOVERY)
        endpoints = endpoints_of(document, self._settings.issuer)
        self._endpoints, self._keys = endpoints, Keys(lambda: document_at(endpoints.keys))
        return endpoints


def endpoints_of(document: Json, issuer: str) -> Endpoints:
    """The endpoints in the document of discovery. Raises ProviderUnavailable for a document of another issuer or without them."""
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        named = document.get("issuer") if isinstance(document, dict) else None
        shown = repr(remove_password(named)[:_LONGEST]) if isinstance(named, str) else "nothing"
        raise ProviderUnavailable(
            f"the provider at {remove_password(issuer)} names itself {shown}: set --oidc-issuer to that name"
        )
    methods = document.get("token_endpoint_auth_methods_supported")
    return Endpoints(
        _endpoint(document, "authorization_endpoint", issuer),
        _endpoint(document, "token_endpoint", issuer),
        _endpoint(document, "jwks_uri", issuer),
        _endpoint(document, "userinfo_endpoint", issuer) if "userinfo_endpoint" in document else "",
        posts_secret=isinstance(methods, list) and "client_secret_basic" not in methods,
    )


def _endpoint(document: JsonObject, name: str, issuer: str) -> str:
    """A URL of the document, by TLS if the issuer is reached by TLS."""
    url = document.get(name)
    if not isinstance(url, str) or urlsplit(url).scheme not in {"https", urlsplit(issuer).scheme}:
        raise ProviderUnavailable(
            f"the provider at {remove_password(issuer)} names no {name} that begins with https://"
        )
    return url


def _texts(value: Json) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
