"""The key `tokens`: the bearer tokens that `assay serve` accepts, each as its SHA-256."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from scanner.config.file_key import FileKey
from scanner.documents.nodes import Node
from scanner.model.access_token import NAME, AccessToken
from scanner.model.json import JsonObject

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ITEM: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "sha256"],
    "properties": {
        "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "sha256": {"type": "string", "pattern": f"^{_DIGEST.pattern}$"},
        "expires": {"type": "string", "format": "date"},
    },
}


def tokens_of(nodes: Mapping[str, Node]) -> tuple[AccessToken, ...]:
    """The tokens that the file gives, by key. Raises BadDocument."""
    return _tokens(nodes[TOKENS_KEY.key]) if TOKENS_KEY.key in nodes else ()


def _tokens(node: Node) -> tuple[AccessToken, ...]:
    tokens: dict[str, AccessToken] = {}
    for item in node.items():
        token = _token(item)
        if token.name in tokens:
            item.fail(f"there are two tokens named {token.name}: remove one of them")
        tokens[token.name] = token
    return tuple(tokens.values())


def _token(node: Node) -> AccessToken:
    fields = node.fields(("name", "sha256", "expires"))
    for name in ("name", "sha256"):
        if name not in fields:
            node.fail(f"has no {name}: copy the lines that `assay token create` prints")
    if not NAME.fullmatch(fields["name"].string()):
        fields["name"].fail("must have at most 64 letters, digits, dots, dashes and underscores")
    if not _DIGEST.fullmatch(fields["sha256"].string()):
        # The value is not quoted: a token that was copied here by mistake is a secret.
        fields["sha256"].fail("must have 64 hexadecimal digits: copy the line that `assay token create` prints")
    expires = fields["expires"].day() if "expires" in fields else None
    return AccessToken(fields["name"].string(), fields["sha256"].string(), expires)


TOKENS_KEY: Final = FileKey(
    "tokens",
    "tokens",
    "Bearer tokens that `assay serve` accepts, each with its name, its SHA-256 and the last day on which it is valid (UTC). "
    "`assay token create` prints the entry of a new token.",
    f"[{{name: grafana, sha256: '{'0' * 64}', expires: '2027-03-31'}}]",
    {"type": "array", "items": _ITEM},
    _tokens,
)
