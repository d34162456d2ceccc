"""The values that a configuration shows: a value is withheld unless its key is known to hold no secret.

Every key of the file, each field of the objects in it, and so every flag and variable has a class here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, assert_never

from scanner.audit.sensitive_fields import MASK, mask_named_secrets
from scanner.errors import UsageError
from scanner.model.json import Json
from scanner.model.urls import origin_of, remove_password

_USER_OF_HTTP: Final = re.compile(r"(?P<kept>\bhttps?://)[^/\s:@]+(?=@)")
"""A user without a password in a URL of HTTP, often a token."""


class Visibility(Enum):
    """The part of a value that is shown."""

    AS_WRITTEN = auto()
    """The text, without what looks like a secret."""
    URL = auto()
    """A URL without user, password and query; or a path."""
    ORIGIN = auto()
    """Scheme and host of a URL, whose path may be a secret."""
    DATABASE = auto()
    """The address of a database as messages have it."""
    KEY_ALONE = auto()
    """The key of `KEY=VALUE`."""
    WITHHELD = auto()
    """Nothing."""


_AS_WRITTEN: Final = (
    *("from", "kubernetesVersion", "namespaceLabel", "namespace", "allNamespaces", "excludeNamespace", "selector", "kind", "skipKind"),
    *("policy", "binding", "policies", "noClusterPolicies", "assumeBound", "kyvernoVersion", "kyvernoCompat", "kyvernoResourceFilters"),
    *("podSecurityConfig", "noPodSecurity"),
    *("allowNetwork", "allowNetworkTo", "operation", "asUser", "asUserGroup", "kubeconfig", "context", "as", "asGroup", "requestTimeout", "kindTimeout"),
    *("chunkSize", "concurrency", "qps", "burst", "fleet", "index", "parallel", "workers", "secondOpinion", "secondOpinionSample"),
    *("minCoverage", "keepLabel", "keepAnnotation", "waivers", "waiversNamespace", "output", "export", "singleFile", "html", "controls", "snapshot", "recordAs"),
    *("databaseTimeout", "dbFile", "clusterName", "restoredCluster", "acceptDamage", "allowEmpty", "exitZeroOn", "failOn", "baseline", "minSeverity", "junitFailAll"),
    *("pushMetricsTokenFile", "wide", "color", "quiet", "verbose", "logFormat", "logProbes", "terminationLog", "at", "listen", "metricsListen"),
    *("tlsCert", "tlsKey", "insecureNoAuth", "sessionKeyFile", "sessionTime", "oidcClientId", "oidcClientSecretFile", "oidcGroup"),
    *("oidcGroupsClaim", "oidcScope", "assertionHeader", "assertionAudience", "schedule.cron", "schedule.timeZone", "schedule.tolerance"),
    *("owners.label", "owners.annotation", "owners.place", "descriptions.policy", "descriptions.language", "descriptions.severity"),
    *("descriptions.title", "descriptions.category", "descriptions.description", "descriptions.remediation", "longestWaiverDays"),
    *("expiringWaiverDays", "databaseLimit", "tokens.name", "tokens.expires", "notifications.name", "notifications.keyFile"),
    *("notifications.keyVariable", "notifications.owners", "notifications.minSeverity", "notifications.clusters"),
    "notifications.insecureHttp",
)  # fmt: skip
SHOWING: Final[Mapping[str, Visibility]] = {
    **dict.fromkeys(_AS_WRITTEN, Visibility.AS_WRITTEN),
    **dict.fromkeys(("oidcIssuer", "assertionIssuer", "assertionKeys", "descriptions.docs"), Visibility.URL),
    **dict.fromkeys(("pushMetrics", "publicUrl", "notifications.url"), Visibility.ORIGIN),
    "db": Visibility.DATABASE,
    "asUserExtra": Visibility.KEY_ALONE,
    **dict.fromkeys(("asUserUid", "tokens.sha256"), Visibility.WITHHELD),
}
"""The class of each key; fields of the objects in a list follow the key of the list. A key without a class is withheld."""


def mask_text(text: str) -> str:
    """A text without what looks like a secret; users of databases, paths and addresses stay."""
    return mask_named_secrets(_USER_OF_HTTP.sub(lambda match: f"{match['kept']}{MASK}", text))


def mask_document(value: Json, key: str = "") -> Json:
    """A value of a key, or a whole document, as it may be shown."""
    match value:
        case None:
            return None
        case str() | bool() | int() | float():
            return _mask(SHOWING.get(key, Visibility.WITHHELD), value)
        case Mapping():
            return {name: mask_document(item, f"{key}.{name}" if key else name) for name, item in value.items()}
        case _:
            return [mask_document(item, key) for item in value]


def _mask(showing: Visibility, value: str | float) -> Json:
    if showing is not Visibility.WITHHELD and not isinstance(value, str):
        return value
    text = str(value)
    match showing:
        case Visibility.AS_WRITTEN:
            return mask_text(text)
        case Visibility.URL:
            return mask_text(remove_password(text))
        case Visibility.ORIGIN:
            return mask_text(origin_of(text)) or MASK
        case Visibility.DATABASE:
            return _mask_database(text)
        case Visibility.KEY_ALONE:
            return f"{mask_text(text.partition('=')[0])}={MASK}" if "=" in text else MASK
        case Visibility.WITHHELD:
            return MASK
        case _ as never:
            assert_never(never)


def _mask_database(text: str) -> str:
    from scanner.store.database.address import address_of

    try:
        return mask_text(address_of(text).text)
    except UsageError:
        return MASK
