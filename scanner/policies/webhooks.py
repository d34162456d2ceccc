"""Admission webhooks: programs that also admit or deny requests. A scan names them and cannot evaluate them.

Source of truth: `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration` of admissionregistration.k8s.io.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from scanner.admission.match import MatchTarget, applies
from scanner.errors import ConfigurationError
from scanner.model.json import as_list, as_object, as_text
from scanner.model.policy import MatchResources
from scanner.model.resource import Kind, Resource
from scanner.policies import manifest

_PLURALS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


def list_webhook_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """The kinds of webhook configurations to list, each in the newest served version."""
    offered = tuple(kinds)
    for plural in _PLURALS:
        served = {kind.version: kind for kind in offered if (kind.group, kind.plural) == (manifest.GROUP, plural)}
        yield from [served[version] for version in manifest.VERSIONS if version in served][:1]


class Webhook(Struct, frozen=True):
    """A webhook of a configuration: the requests with which the API server calls it. `changes` objects, if it is a mutating one."""

    name: str
    configuration: str
    match: MatchResources
    changes: bool
    has_conditions: bool

    def may_receive(self, target: MatchTarget) -> bool:
        """Return whether the server calls the webhook about a request, or may: its match conditions are not evaluated."""
        try:
            return applies(self.match, target) is not None
        except ConfigurationError:
            return True


def read_webhooks(configuration: Resource) -> Iterator[Webhook]:
    """The webhooks of a configuration. Their rules are those of a policy; without rules the server never calls them."""
    for item in as_list(configuration.body.get("webhooks")):
        fields = {**as_object(item), "resourceRules": as_object(item).get("rules")}
        match = manifest.read_match(fields)
        if match is not None and match.rules:
            yield Webhook(
                as_text(fields.get("name")),
                configuration.name,
                match,
                configuration.kind.plural.startswith("mutating"),
                bool(as_list(fields.get("matchConditions"))),
            )
