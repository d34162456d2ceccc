"""Assay for people who embed it: documents in, outcomes out.

```python
from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds

auditor = Auditor(policies=[policy], bindings=[binding], params=[config_map], namespaces=[], kinds=builtin_kinds())
for ruling in auditor.evaluate(pod):
    print(ruling.invocation.binding.name, ruling.judgements)
```

Documents are decoded JSON objects. Nothing is read, listed or stored here; the command line takes the same path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from scanner.admission.auditability import AUDITABLE
from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import InvocationResult, judge
from scanner.admission.match import exempt
from scanner.admission.versions import convert
from scanner.cel import Decider, Remembering
from scanner.errors import InvalidManifest, SchemaUnknown, UsageError
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.policy import Operation
from scanner.model.release import release_of
from scanner.model.resource import Kind, Resource, UserInfo, resource_of
from scanner.policies import manifest
from scanner.policies.kyverno import bind as kyverno
from scanner.policies.kyverno import spec
from scanner.policies.kyverno.bind import KyvernoContext
from scanner.policies.kyverno.exceptions import read_exception
from scanner.policies.mutating import bind as mutating
from scanner.policies.mutating.bind import NoSchemas
from scanner.policies.mutating.mutation import Schemas
from scanner.policies.plan import equivalents
from scanner.policies.validating import bind as validating
from scanner.policies.validating.bind import bind
from scanner.scan.param_table import ParamTable

__all__ = ["Auditor", "InvalidManifest", "InvocationResult", "KyvernoContext", "SchemaUnknown", "Schemas", "UserInfo"]


class Auditor:
    """Policies in force, ready to judge objects one at a time.

    `policies` and `bindings` are manifests of any served version; with `validate` they are first held to what the API
    would store (InvalidManifest). `kinds` is what the cluster serves. A namespace that is not given exists with its
    name label only, unless `strict_namespaces`: then an object in it is judged as in a missing namespace. A policy that
    wants an object in another version gets it there when that takes no server; `relabelled` names the groups of custom
    resources whose versions differ in apiVersion alone. `authorizer` answers what expressions ask about permissions; the
    same question is asked once. `kubernetes_version` (`1.36`, `v1.36.2`) chooses the rules: by default the newest known.
    Mutating policies and their bindings may be among the others; `schemas` tells them how the objects of a kind are merged,
    and without the schema of its kind an object raises SchemaUnknown. So may Kyverno's validating policies be; `exceptions` are
    their PolicyExceptions, and `circumstances` say in whose manner they judge, when, and what they can read of the cluster.
    """

    def __init__(
        self,
        *,
        policies: Iterable[JsonObject],
        bindings: Iterable[JsonObject],
        params: Iterable[JsonObject] = (),
        namespaces: Iterable[JsonObject] = (),
        kinds: Iterable[Kind],
        user: UserInfo | None = None,
        validate: bool = False,
        strict_namespaces: bool = False,
        relabelled: Iterable[str] = (),
        authorizer: Decider | None = None,
        kubernetes_version: str = "",
        schemas: Schemas | None = None,
        exceptions: Iterable[JsonObject] = (),
        kyverno_context: KyvernoContext | None = None,
    ) -> None:
        source = "document" if validate else "cluster"
        self.release = release_of(kubernetes_version)
        rules = self.release.rules
        served = tuple(kinds)
        self._kinds = {(kind.api_version, kind.kind): kind for kind in served}
        self._relabelled = frozenset(relabelled)
        documents = tuple(policies)
        changing, checking = _split(
            (document for document in documents if not spec.is_policy(document)), mutating.LANGUAGE
        )
        changing_bindings, checking_bindings = _split(bindings, f"{mutating.LANGUAGE}Binding")
        self._bound = (
            *bind(
                [validating.read_policy(document, source=source, rules=rules) for document in checking],
                [validating.read_binding(document, source=source) for document in checking_bindings],
                rules=rules,
                schemas=schemas,
            ),
            *mutating.bind(
                [mutating.read_policy(document, source=source, rules=rules) for document in changing],
                [mutating.read_binding(document, source=source) for document in changing_bindings],
                schemas or NoSchemas(),
                rules=rules,
            ),
            *kyverno.bind(
                [spec.read_policy(document, source=source) for document in documents if spec.is_policy(document)],
                [read_exception(document, source=source) for document in exceptions],
                kyverno_context or KyvernoContext(datetime.now(tz=UTC)),
            ),
        )
        table = ParamTable(served)
        for document in params:
            table.add(document)
        self._world = EvaluationContext(
            params=table,
            namespaces={as_text(dig(document, "metadata", "name")): document for document in namespaces},
            implied_namespaces=not strict_namespaces,
            equivalents=equivalents(served),
            user=user or UserInfo(),
            authorizer=authorizer and Remembering(authorizer),
        )

    def evaluate(self, document: JsonObject, *, operation: Operation | None = None) -> tuple[InvocationResult, ...]:
        """What every policy in force says about one object, by policy, binding and param.

        `operation` is CREATE, UPDATE (one that changes nothing), or by default the first of these that a rule names.
        Raises UsageError for an object of a kind that is not served.
        """
        key = (as_text(document.get("apiVersion")), as_text(document.get("kind")))
        kind = self._kinds.get(key)
        if kind is None:
            raise UsageError(
                f"{key[1] or 'an object without kind'} in version {key[0] or '(none)'} is not among the served kinds"
            )
        world = self._world.on((operation,)) if operation else self._world.on(AUDITABLE)
        views = tuple(self._views(document, kind))
        asked = [bound for bound in self._bound if not exempt(kind, static=bound.policy.static)]
        return tuple(
            invocation_result
            for bound in asked
            for resource in views
            for invocation_result in judge(bound, resource, kind, world)
        )

    def _views(self, document: JsonObject, kind: Kind) -> Iterator[Resource]:
        """The object in each of its kinds."""
        yield resource_of(kind, document)
        for other in self._world.equivalents.get(kind, ()):
            if kind.group in self._relabelled:
                yield resource_of(other, {**document, "apiVersion": other.api_version})
            elif (converted := convert(document, other)) is not None:
                yield resource_of(other, converted)


def _split(documents: Iterable[JsonObject], kind: str) -> tuple[list[JsonObject], list[JsonObject]]:
    """The documents of a kind of the admissionregistration API, and the others."""
    found: tuple[list[JsonObject], list[JsonObject]] = ([], [])
    for document in documents:
        found[not manifest.is_a(document, kind)].append(document)
    return found
