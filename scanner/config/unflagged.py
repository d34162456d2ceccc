"""The keys of the file that have no flag: the settings of reports, the tokens of `assay serve`, and the routes of notifications."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from scanner.config.notifications import NOTIFICATIONS_KEY
from scanner.config.setting import FileKey
from scanner.documents.nodes import Node
from scanner.model.access_token import NAME, AccessToken
from scanner.model.json import JsonObject
from scanner.posture.owners import DEFAULT_OWNER_KEYS, PLACES, OwnerKey, Source
from scanner.posture.settings import DEFAULT_SETTINGS, Settings
from scanner.posture.severity import DescriptionOverride, Severity
from scanner.posture.waivers.waivers import EXPIRING_DAYS

# The keys of the settings of reports, which have no flag: about policies, owners, waivers and the database (see
# `posture.settings`).

_SOURCES: Final[tuple[Source, ...]] = get_args(Source)
_TEXTS: Final = ("title", "category", "description", "remediation", "docs")
_SIZE: Final = re.compile(r"([1-9][0-9]{0,8})(Mi|Gi|Ti)")
_UNITS: Final = {"Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_STRING: Final[JsonObject] = {"type": "string", "minLength": 1}


def read_settings(nodes: Mapping[str, Node]) -> Settings:
    """The settings that the file gives, by key. Raises BadDocument."""
    values: dict[str, Any] = {each.field: each.read(nodes[each.key]) for each in POSTURE_KEYS if each.key in nodes}
    return replace(DEFAULT_SETTINGS, **values)


def _read_owners(node: Node) -> tuple[OwnerKey, ...]:
    return tuple(key for item in node.items() for key in _read_owner_keys(item))


def _read_owner_keys(node: Node) -> list[OwnerKey]:
    """The key at each place that the entry names: all three, if it names none."""
    fields = node.fields((*_SOURCES, "place"))
    sources = [source for source in _SOURCES if source in fields]
    if len(sources) != 1:
        node.fail("must have a label or an annotation, and not both, such as {label: team}")
    place = fields.get("place")
    if place is not None and place.string() not in PLACES:
        place.fail(f"must be one of {', '.join(PLACES)}")
    key = fields[sources[0]].string()
    return [OwnerKey(each, sources[0], key) for each in PLACES if place is None or each == place.value]


def _read_descriptions(node: Node) -> tuple[DescriptionOverride, ...]:
    return tuple(map(_read_description, node.items()))


def _read_description(node: Node) -> DescriptionOverride:
    fields = node.fields(("policy", "language", "severity", *_TEXTS))
    if "policy" not in fields:
        node.fail("has no policy: write the name of a policy, or a glob such as require-*")
    return DescriptionOverride(
        fields["policy"].string(),
        fields["language"].string() if "language" in fields else "",
        fields["severity"].choice(Severity) if "severity" in fields else None,
        **{name: fields[name].string() for name in _TEXTS if name in fields},
    )


def _read_bytes(node: Node) -> int:
    """A size in bytes, written as a number or as a quantity such as 50Gi."""
    if not isinstance(node.value, str):
        return node.integer(least=1)
    size = _SIZE.fullmatch(node.value)
    if size is None:
        node.fail("must be a size: write it as 500Mi, 50Gi or 2Ti, or in bytes")
    return int(size[1]) * _UNITS[size[2]]


POSTURE_KEYS: Final = (
    FileKey(
        "owners",
        "owners",
        "Labels and annotations that name the team of an object, in their order; `place` is object, workload or namespace, "
        "without it all three. Default: the labels team and owner of the object, of its workload, of its namespace.",
        "[{label: example.com/team}, {annotation: example.com/contact, place: namespace}]",
        {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"label": _STRING, "annotation": _STRING, "place": {"enum": list(PLACES)}},
                "oneOf": [{"required": ["label"]}, {"required": ["annotation"]}],
            },
        },
        _read_owners,
        [{key.source: key.key, "place": key.place} for key in DEFAULT_OWNER_KEYS],
    ),
    FileKey(
        "descriptions",
        "descriptions",
        "Severity and texts of policies, instead of their annotations; the first entry whose glob `policy` matches a name counts.",
        "[{policy: require-limits, severity: high, title: Containers have limits}]",
        {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["policy"],
                "properties": {
                    "policy": _STRING,
                    "language": _STRING,
                    "severity": {"enum": [severity.value for severity in Severity]},
                    **dict.fromkeys(_TEXTS, _STRING),
                },
            },
        },
        _read_descriptions,
    ),
    FileKey(
        "longestWaiverDays",
        "longest_waiver_days",
        "The longest time from the first to the last day of a waiver, in days. A longer waiver waives nothing.",
        "180",
        {"type": "integer", "minimum": 1},
        lambda node: node.integer(least=1),
    ),
    FileKey(
        "expiringWaiverDays",
        "expiring_waiver_days",
        f"The number of days before the end of a waiver in which the waiver is expiring. Default: {EXPIRING_DAYS}.",
        "14",
        {"type": "integer", "minimum": 0},
        lambda node: node.integer(),
        EXPIRING_DAYS,
    ),
    FileKey(
        "databaseLimit",
        "database_limit",
        "The size that the database may reach, in bytes or with Mi, Gi or Ti, for the metric `assay_database_limit_bytes`. "
        "Without this key, the metric has the free space of the volume of a SQLite file, and PostgreSQL has no limit.",
        "50Gi",
        {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{_SIZE.pattern}$"}]},
        _read_bytes,
    ),
)


# The key `tokens`: the bearer tokens that `assay serve` accepts, each as its SHA-256.

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_TOKEN: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "sha256"],
    "properties": {
        "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "sha256": {"type": "string", "pattern": f"^{_DIGEST.pattern}$"},
        "expires": {"type": "string", "format": "date"},
    },
}


def read_tokens(nodes: Mapping[str, Node]) -> tuple[AccessToken, ...]:
    """The tokens that the file gives, by key. Raises BadDocument."""
    return _read_tokens(nodes[TOKENS_KEY.key]) if TOKENS_KEY.key in nodes else ()


def _read_tokens(node: Node) -> tuple[AccessToken, ...]:
    tokens: dict[str, AccessToken] = {}
    for item in node.items():
        token = _read_token(item)
        if token.name in tokens:
            item.fail(f"there are two tokens named {token.name}: remove one of them")
        tokens[token.name] = token
    return tuple(tokens.values())


def _read_token(node: Node) -> AccessToken:
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
    {"type": "array", "items": _TOKEN},
    _read_tokens,
)


UNFLAGGED_KEYS: Final = (*POSTURE_KEYS, TOKENS_KEY, NOTIFICATIONS_KEY)
