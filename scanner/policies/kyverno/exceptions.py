"""PolicyException: the objects that a policy exempts, and the end of the exemption.

Source of truth: the type in `policies.kyverno.io` and `vpol` of Kyverno 1.19. References are literal: name and kind, for an
exception in any namespace. An exception with images or allowed values exempts no object by itself: the policy's expressions can
read these values.

Rules: `docs/semantics/kyverno.md#exceptions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from scanner.errors import InvalidManifest
from scanner.model.json import Json, JsonObject, as_list, as_text, dig, text_map, texts
from scanner.model.policy import NamedExpression
from scanner.model.rule import RuleType
from scanner.policies.bound_language import RuleDocument, Supporting
from scanner.policies.kyverno.kinds import EXCEPTION
from scanner.policies.kyverno.schema import LABELS, TEXTS, Schema, moment, schema_faults
from scanner.policies.kyverno.spec import NAMED, KyvernoPolicy, in_group, unknown_in

_PRIORITY = "polex.kyverno.io/priority"
_DIGITS = re.compile(r"[0-9]{1,63}")
"""A label is no longer; those of a file can be."""
_SPEC: Schema = {
    "allowedValues": TEXTS,
    "evaluationMode": "string",
    "expiresAt": "date-time",
    "images": TEXTS,
    "matchConditions": NAMED,
    "policyRefs": [{"kind": "string!", "name": "string!"}],
    "properties": LABELS,
    "reportResult": "skip|pass",
}


class PolicyException(Struct, frozen=True):
    """One exception. `references` are pairs of name and kind; `expires` is None if it has no end.

    With `passes` Kyverno's reports have pass instead of skip; of several, the highest `priority` decides.
    """

    namespace: str
    name: str
    references: tuple[tuple[str, str], ...]
    conditions: tuple[NamedExpression, ...]
    images: tuple[str, ...]
    values: tuple[str, ...]
    passes: bool
    expires: datetime | None
    priority: int
    unknown: tuple[str, ...] = ()
    source: str = "cluster"

    @property
    def key(self) -> str:
        """The name in results."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def partial(self) -> bool:
        """Return whether the exception only offers images or values to the policy's expressions."""
        return bool(self.images or self.values)

    def expired(self, now: datetime) -> bool:
        """Return whether the exception has ended at `now`."""
        return self.expires is not None and self.expires <= now


def is_exception(document: JsonObject) -> bool:
    """Return whether a document is an exception of the CEL policies; `kyverno.io` has another kind of this name."""
    return document.get("kind") == EXCEPTION and in_group(document)


def read_exception(document: JsonObject, *, source: str = "cluster") -> PolicyException:
    """The exception of a manifest.

    Raises InvalidManifest for a manifest from a file (`source` is not `cluster`) that the API or Kyverno's webhook would
    reject.
    """
    spec, metadata = dig(document, "spec"), dig(document, "metadata")
    faults = () if source == "cluster" else tuple(_faults(spec))
    if faults:
        raise InvalidManifest(faults)
    return PolicyException(
        namespace=as_text(dig(metadata, "namespace")),
        name=as_text(dig(metadata, "name")),
        references=tuple(
            (as_text(dig(ref, "name")), as_text(dig(ref, "kind"))) for ref in as_list(dig(spec, "policyRefs"))
        ),
        conditions=tuple(
            NamedExpression(as_text(dig(item, "name")), as_text(dig(item, "expression")))
            for item in as_list(dig(spec, "matchConditions"))
        ),
        images=texts(dig(spec, "images")),
        values=texts(dig(spec, "allowedValues")),
        passes=dig(spec, "reportResult") == "pass",
        expires=moment(as_text(dig(spec, "expiresAt"))),
        priority=_priority(text_map(dig(metadata, "labels")).get(_PRIORITY, "")),
        unknown=tuple(unknown.path for unknown in unknown_in(spec, _SPEC, "spec")),
        source=source,
    )


def _faults(spec: Json) -> Iterator[str]:
    """The errors for which the API server rejects the exception; if there are none, those of Kyverno's webhook."""
    wrong = ["spec: Required value"] if spec is None else [*schema_faults(spec, _SPEC, "spec")]
    yield from wrong
    references = as_list(dig(spec, "policyRefs"))
    if not wrong and not references:
        yield "spec.policyRefs: Required value"
    for index, reference in enumerate(references):
        for field in ("name", "kind"):
            if dig(reference, field) == "":
                yield f"spec.policyRefs[{index}].{field}: Required value"


def _priority(text: str) -> int:
    """The number of 64 bits that a label has, 0 for any other text (`strconv.Atoi`)."""
    number = int(text) if _DIGITS.fullmatch(text) else 0
    return number if number < 2**63 else 0


def concerning(policy: KyvernoPolicy, exceptions: tuple[PolicyException, ...]) -> tuple[PolicyException, ...]:
    """The exceptions that name a policy, by namespace and name; one that names it twice is repeated."""
    named = (policy.name, policy.kind)
    ordered = sorted(exceptions, key=lambda exception: (exception.namespace, exception.name))
    return tuple(exception for exception in ordered for reference in exception.references if reference == named)


# The objects that decide together with Kyverno's policies: the exceptions that name them, and the global context
# entries.
#
# An entry counts for every policy, because an expression can compute the name of the entry that it reads.


def rule_documents(
    policies: Iterable[KyvernoPolicy], exceptions: Iterable[Supporting], entries: Iterable[Supporting]
) -> Iterator[RuleDocument]:
    """The manifests of the exceptions and entries that the policies depend on; none without policies."""
    named = {(policy.name, policy.kind) for policy in policies}
    for exception in exceptions:
        if not named.isdisjoint(read_exception(exception.body).references):
            yield RuleDocument(RuleType.EXCEPTION, exception.name, exception.body)
    for entry in entries if named else ():
        yield RuleDocument(RuleType.GLOBAL_CONTEXT, entry.name, entry.body)
