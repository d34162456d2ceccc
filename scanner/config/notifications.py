"""The key `notifications`: the routes that `assay scan` notifies about changes, each to a receiver of signed webhooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from scanner.config.environment import is_foreign
from scanner.config.setting import PREFIX, FileKey
from scanner.documents.nodes import Node
from scanner.model.json import JsonObject
from scanner.posture.routes import Route
from scanner.posture.severity import Severity

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELDS: Final = ("name", "url", "keyFile", "keyVariable", "owners", "minSeverity", "clusters", "insecureHttp")
_STRING: Final[JsonObject] = {"type": "string", "minLength": 1}
_GLOBS: Final[JsonObject] = {"type": "array", "minItems": 1, "items": _STRING}
_ITEM: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "url"],
    "properties": {
        "name": {"type": "string", "pattern": f"^{_NAME.pattern}$"},
        "url": {"type": "string", "pattern": "^https?://"},
        "keyFile": _STRING,
        "keyVariable": {"type": "string", "pattern": f"^{_VARIABLE.pattern}$"},
        "owners": _GLOBS,
        "minSeverity": {"enum": [severity.value for severity in Severity]},
        "clusters": _GLOBS,
        "insecureHttp": {"type": "boolean"},
    },
    "oneOf": [{"required": ["keyFile"]}, {"required": ["keyVariable"]}],
}


def read_routes(nodes: Mapping[str, Node]) -> tuple[Route, ...]:
    """The routes that the file gives, by key. Raises BadDocument."""
    return _read_routes(nodes[NOTIFICATIONS_KEY.key]) if NOTIFICATIONS_KEY.key in nodes else ()


def _read_routes(node: Node) -> tuple[Route, ...]:
    routes: dict[str, Route] = {}
    for item in node.items():
        route = _read_route(item)
        if route.name in routes:
            item.fail(f"there are two routes named {route.name}: remove one of them")
        routes[route.name] = route
    return tuple(routes.values())


def _read_route(node: Node) -> Route:
    fields = node.fields(_FIELDS)
    for name in ("name", "url"):
        if name not in fields:
            node.fail(
                f"has no {name}, such as {{name: payments, url: https://hooks.example.com/assay, keyFile: /etc/assay/key}}"
            )
    if not _NAME.fullmatch(fields["name"].string()):
        fields["name"].fail("must have at most 63 small letters, digits and dashes")
    if ("keyFile" in fields) is ("keyVariable" in fields):
        node.fail(
            "must have keyFile or keyVariable, and not both: the file or the variable with the key of the signatures"
        )
    return Route(
        name=fields["name"].string(),
        url=_read_url(fields),
        key_file=fields["keyFile"].string() if "keyFile" in fields else "",
        key_variable=_read_variable(fields["keyVariable"]) if "keyVariable" in fields else "",
        owners=_read_globs(fields, "owners"),
        min_severity=fields["minSeverity"].choice(Severity) if "minSeverity" in fields else Severity.INFO,
        clusters=_read_globs(fields, "clusters"),
    )


def _read_url(fields: Mapping[str, Node]) -> str:
    url = fields["url"].string()
    insecure_http = "insecureHttp" in fields and fields["insecureHttp"].boolean()
    if fault := fault_of_url(url, insecure_http=insecure_http):
        # The value is not quoted: the path of a URL can be a secret.
        fields["url"].fail(fault)
    return url


def _read_variable(node: Node) -> str:
    """The name of a variable. One that begins with ASSAY_ would be an unknown setting."""
    name = node.string()
    if not _VARIABLE.fullmatch(name):
        node.fail("must be the name of a variable, such as PAYMENTS_WEBHOOK_KEY, and not the key")
    if name.startswith(PREFIX) and not is_foreign(name):
        node.fail(f"must not begin with {PREFIX}, as the variables of settings do")
    return name


def _read_globs(fields: Mapping[str, Node], name: str) -> tuple[str, ...]:
    globs = fields[name].strings() if name in fields else ()
    if name in fields and not globs:
        fields[name].fail("must not be empty: remove the field to mean all")
    return globs


NOTIFICATIONS_KEY: Final = FileKey(
    "notifications",
    "routes",
    "Receivers of signed webhooks about what changed since the last scan. Each has a name, a URL, `keyFile` or `keyVariable` with the key "
    "of the signatures, and what it is notified about: `owners` and `clusters` (globs), and `minSeverity`. Default: everything.",
    "[{name: payments, url: 'https://hooks.example.com/assay', keyFile: /etc/assay/payments.key, owners: [payments], minSeverity: high}]",
    {"type": "array", "items": _ITEM},
    _read_routes,
)


# The form of the URL of a receiver.

_SCHEMES: Final = ("http", "https")


def fault_of_url(url: str, *, insecure_http: bool) -> str:
    """The reason why a URL is not one of a receiver, empty if it is. No reason repeats the URL, whose path can be a secret."""
    parts = _parts(url)
    if parts is None or parts.scheme not in _SCHEMES:
        return "must be a URL such as https://hooks.example.com/assay"
    if parts.username is not None or parts.password is not None:
        return "must have no user and no password: the signature authenticates Assay"
    if parts.fragment:
        return "must have no fragment: remove # and what follows"
    if parts.scheme == "http" and not insecure_http:
        return "must begin with https; insecureHttp: true allows http"
    return ""


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL; None for a text that is no URL with a host."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return parts if parts.hostname and port != 0 else None
