"""Admission webhooks: programs that also admit or deny requests. A scan names them and cannot evaluate them.

Source of truth: `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration` of admissionregistration.k8s.io.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanner.admission.match import MatchTarget, applies
from scanner.errors import ConfigurationError
from scanner.model.json import as_list, as_object, as_text, dig
from scanner.model.policy import MatchResources
from scanner.model.resource import Kind, Resource
from scanner.model.scans.scan import OutOfScope
from scanner.policies import manifest

_PLURALS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
_NAMED = 5


def list_webhook_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """The kinds of webhook configurations to list, each in the newest served version."""
    offered = tuple(kinds)
    for plural in _PLURALS:
        served = {kind.version: kind for kind in offered if (kind.group, kind.plural) == (manifest.GROUP, plural)}
        yield from [served[version] for version in manifest.VERSIONS if version in served][:1]


def describe_webhooks(configuration: Resource) -> OutOfScope:
    """One configuration, with the names of its webhooks."""
    names = [as_text(dig(item, "name")) for item in as_list(configuration.body.get("webhooks"))]
    names_text = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    number = f"{len(names)} webhook{'' if len(names) == 1 else 's'}"
    why = f"{number} ({names_text}): what a program decides is not written in the API" if names else "it has no webhook"
    return OutOfScope(configuration.kind.kind, configuration.name, why)


def describe_unlisted(kind: Kind, why: str) -> OutOfScope:
    """The record of configurations that could not be listed."""
    return OutOfScope(kind.kind, "", f"whether there are any is not known: {why}")


@dataclass(frozen=True, slots=True)
class Webhook:
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
